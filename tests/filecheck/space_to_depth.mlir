// RUN: hloforge opt %s --pass=unfold-convolutions | filecheck %s --implicit-check-not=stablehlo.convolution

// The convolution of the rows becomes a product in turn: its window has 16 places, 8 apart.
// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0 : (tensor<2x1532x1xf32>) -> tensor<2x383x4xf32>
// CHECK-COUNT-8: stablehlo.slice [[X]]
// CHECK: [[U:%.+]] = stablehlo.concatenate {{.*}} -> tensor<2x376x32xf32>
// CHECK: [[W:%.+]] = stablehlo.reshape %arg1 : (tensor<512x1x64xf32>) -> tensor<16x32x64xf32>
// CHECK: stablehlo.slice [[U]] [0:2, 0:256, 0:32]
// CHECK: stablehlo.slice [[U]] [0:2, 8:264, 0:32]
// CHECK-COUNT-13: stablehlo.slice [[U]]
// CHECK: stablehlo.slice [[U]] [0:2, 120:376, 0:32]
// CHECK: [[V:%.+]] = stablehlo.concatenate
// CHECK: [[ROWS:%.+]] = stablehlo.reshape [[V]] {{.*}} -> tensor<512x512xf32>
// CHECK: [[K:%.+]] = stablehlo.reshape [[W]] {{.*}} -> tensor<512x64xf32>
// CHECK: stablehlo.dot_general [[ROWS]], [[K]], contracting_dims = [1] x [0]
// CHECK: return {{%.+}} : tensor<2x256x64xf32>
func.func @main(%x: tensor<2x1532x1xf32>, %w: tensor<512x1x64xf32>) -> tensor<2x256x64xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [4]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x1532x1xf32>, tensor<512x1x64xf32>) -> tensor<2x256x64xf32>
  return %y : tensor<2x256x64xf32>
}
