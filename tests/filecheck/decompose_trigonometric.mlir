// RUN: hloforge opt %s --pass=decompose-trigonometric | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.sine
// CHECK: stablehlo.select
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %s = stablehlo.sine %x : tensor<4xf64>
  return %s : tensor<4xf64>
}
