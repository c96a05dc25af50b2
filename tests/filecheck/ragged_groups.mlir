// RUN: hloforge opt %s --pass=lower-mhlo | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x4x5xf32>) -> tensor<2x3x4x5xf32>
// CHECK: "chlo.ragged_dot"
// CHECK-SAME: lhs_batching_dimensions = [0], rhs_batching_dimensions = [0]
func.func @main(%x: tensor<2x6x4xf32>, %y: tensor<3x4x5xf32>, %sizes: tensor<2x3xi64>) -> tensor<2x6x5xf32> {
  %r = "chlo.ragged_dot"(%x, %y, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
    lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1],
    rhs_group_dimensions = [0]>}> : (tensor<2x6x4xf32>, tensor<3x4x5xf32>, tensor<2x3xi64>) -> tensor<2x6x5xf32>
  return %r : tensor<2x6x5xf32>
}
