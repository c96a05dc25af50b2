// RUN: hloforge opt %s --pass=drop-identity-calls | filecheck %s --implicit-check-not=stablehlo.custom_call

// CHECK-LABEL: func.func @main
// CHECK: return %arg0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]0,1}"} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
