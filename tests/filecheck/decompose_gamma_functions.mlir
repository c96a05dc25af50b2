// RUN: hloforge opt %s --pass=decompose-gamma-functions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: chlo.lgamma
// CHECK: [[W:%.+]] = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf64>
// CHECK: [[M:%.+]] = stablehlo.abs [[W]]
// CHECK: stablehlo.log [[M]]
// CHECK: stablehlo.convert {{.*}} : (tensor<4xf64>) -> tensor<4xf32>
// CHECK-NOT: chlo.digamma
// CHECK: stablehlo.log
// Functions of both stay.
// CHECK: chlo.polygamma
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %l = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>
  %d = chlo.digamma %x : tensor<4xf32> -> tensor<4xf32>
  %p = chlo.polygamma %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %l, %d, %p : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
