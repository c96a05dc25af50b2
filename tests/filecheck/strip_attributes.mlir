// RUN: hloforge opt %s --pass=strip-attributes | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot %arg0, %arg1 : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %r = stablehlo.dot %x, %y {mhlo.frontend_attributes = {a = "b"}, result_layout = dense<[1, 0]> : tensor<2xindex>,
    xla_shape = "f32[2,2]{1,0}"} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
