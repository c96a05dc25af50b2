// RUN: hloforge opt %s --pass=unfold-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[W:%.+]] = stablehlo.reshape %arg1 : (tensor<128x64x1x1xf32>) -> tensor<128x64xf32>
// CHECK: [[WS:%.+]] = stablehlo.broadcast_in_dim [[W]], dims = [1, 2]
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0 : (tensor<2x64x28x28xf32>) -> tensor<2x64x784xf32>
// CHECK: [[P:%.+]] = stablehlo.dot_general [[WS]], [[X]], batching_dims = [0] x [0], contracting_dims = [2] x [1]
// CHECK: [[Y:%.+]] = stablehlo.reshape [[P]]
// CHECK: return [[Y]]
func.func @main(%x: tensor<2x64x28x28xf32>, %w: tensor<128x64x1x1xf32>) -> tensor<2x128x28x28xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x64x28x28xf32>, tensor<128x64x1x1xf32>) -> tensor<2x128x28x28xf32>
  return %y : tensor<2x128x28x28xf32>
}
