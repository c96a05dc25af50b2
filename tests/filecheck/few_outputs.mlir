// RUN: hloforge opt %s --pass=unfold-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[K:%.+]] = stablehlo.reshape {{.*}} -> tensor<18x64xf32>
// CHECK: [[X:%.+]] = stablehlo.pad %arg0
// CHECK: [[P:%.+]] = stablehlo.dot_general [[K]], [[X]], contracting_dims = [1] x [3]
// CHECK-COUNT-9: stablehlo.slice {{.*}} tensor<1x2x1x28x28xf32>
// CHECK-COUNT-8: stablehlo.add
// CHECK: return
func.func @main(%x: tensor<1x28x28x64xf32>, %w: tensor<3x3x64x2xf32>) -> tensor<1x28x28x2xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x28x28x64xf32>, tensor<3x3x64x2xf32>) -> tensor<1x28x28x2xf32>
  return %y : tensor<1x28x28x2xf32>
}
