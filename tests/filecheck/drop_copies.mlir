// RUN: hloforge opt %s --pass=drop-copies | filecheck %s --implicit-check-not=mhlo.

// CHECK-LABEL: func.func @main
// CHECK: return %arg0, %arg0
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %token = stablehlo.create_token : !stablehlo.token
  %r = mhlo.copy %x : tensor<4xf32>
  %s = "mhlo.add_dependency"(%r, %token) : (tensor<4xf32>, !stablehlo.token) -> tensor<4xf32>
  return %r, %s : tensor<4xf32>, tensor<4xf32>
}
