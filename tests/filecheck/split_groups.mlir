// RUN: hloforge opt %s --pass=unfold-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P0:%.+]] = stablehlo.slice {{.*}} : (tensor<1x14x14x32x4xf32>) -> tensor<1x14x14x32x1xf32>
// CHECK: stablehlo.broadcast_in_dim [[P0]]
// CHECK: [[W0:%.+]] = stablehlo.slice %arg1 [0:3, 0:3, 0:1, 0:128]
// CHECK: [[X0:%.+]] = stablehlo.reshape {{.*}} -> tensor<1x14x14x128xf32>
// CHECK: [[Y0:%.+]] = stablehlo.convolution([[X0]], [[W0]])
// CHECK-SAME: feature_group_count = 128
// CHECK: [[W1:%.+]] = stablehlo.slice %arg1 [0:3, 0:3, 1:2, 0:128]
// CHECK: [[Y1:%.+]] = stablehlo.convolution({{%.+}}, [[W1]])
// CHECK-SAME: feature_group_count = 128
// CHECK: stablehlo.add [[Y0]], [[Y1]]
// CHECK: return
func.func @main(%x: tensor<1x14x14x128xf32>, %w: tensor<3x3x4x128xf32>) -> tensor<1x14x14x128xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 32 : i64}
    : (tensor<1x14x14x128xf32>, tensor<3x3x4x128xf32>) -> tensor<1x14x14x128xf32>
  return %y : tensor<1x14x14x128xf32>
}
