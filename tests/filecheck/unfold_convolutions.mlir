// RUN: hloforge opt %s --pass=unfold-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.pad %arg0
// CHECK-COUNT-9: stablehlo.slice [[P]]
// CHECK: [[U:%.+]] = stablehlo.concatenate {{.*}} -> tensor<1x14x14x9x256xf32>
// CHECK: [[ROWS:%.+]] = stablehlo.reshape [[U]] : (tensor<1x14x14x9x256xf32>) -> tensor<196x2304xf32>
// CHECK: [[K:%.+]] = stablehlo.reshape %arg1 : (tensor<3x3x256x256xf32>) -> tensor<2304x256xf32>
// CHECK: [[Y:%.+]] = stablehlo.dot_general [[ROWS]], [[K]], contracting_dims = [1] x [0]
// CHECK: return
func.func @main(%x: tensor<1x14x14x256xf32>, %w: tensor<3x3x256x256xf32>) -> tensor<1x14x14x256xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x14x14x256xf32>, tensor<3x3x256x256xf32>) -> tensor<1x14x14x256xf32>
  return %y : tensor<1x14x14x256xf32>
}
