// RUN: hloforge opt %s --pass='polyphase-convolutions{worth=0}' | filecheck %s --implicit-check-not=lhs_dilate

// Results of even numbers meet the kernel's first and third place, those of odd numbers the second and fourth.
// CHECK-LABEL: func.func @main
// CHECK: [[EVEN:%.+]] = stablehlo.slice %arg1 [0:3:2, 0:4, 0:16]
// CHECK: [[A:%.+]] = stablehlo.convolution(%arg0, [[EVEN]])
// CHECK-SAME: [b, 0, f]x[0, i, o]->[b, 0, f]
// CHECK-SAME: pad = {{\[\[}}1, 0]]
// CHECK-SAME: (tensor<1x5x4xf32>, tensor<2x4x16xf32>) -> tensor<1x5x16xf32>
// CHECK: [[ODD:%.+]] = stablehlo.slice %arg1 [1:4:2, 0:4, 0:16]
// CHECK: [[B:%.+]] = stablehlo.convolution(%arg0, [[ODD]])
// CHECK-SAME: pad = {{\[\[}}0, 1]]
// CHECK: [[JOINED:%.+]] = stablehlo.concatenate
// CHECK-SAME: dim = 2
// CHECK: [[Y:%.+]] = stablehlo.reshape [[JOINED]] : (tensor<1x5x2x16xf32>) -> tensor<1x10x16xf32>
// CHECK: return [[Y]]
func.func @main(%x: tensor<1x5x4xf32>, %w: tensor<4x4x16xf32>) -> tensor<1x10x16xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x4xf32>, tensor<4x4x16xf32>) -> tensor<1x10x16xf32>
  return %y : tensor<1x10x16xf32>
}
