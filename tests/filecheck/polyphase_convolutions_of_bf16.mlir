// RUN: hloforge opt %s --pass='polyphase-convolutions{worth=0 element=bf16}' | filecheck %s

// Factors are read as bf16: a convolution for each phase.
// CHECK-LABEL: func.func @main
// CHECK-NOT: lhs_dilate = [2]
// CHECK-COUNT-2: stablehlo.convolution
// CHECK: stablehlo.concatenate
func.func @main(%x: tensor<1x5x4xbf16>, %w: tensor<4x4x16xbf16>) -> tensor<1x10x16xf32> {
  %a = stablehlo.convert %x : (tensor<1x5x4xbf16>) -> tensor<1x5x4xf32>
  %b = stablehlo.convert %w : (tensor<4x4x16xbf16>) -> tensor<4x4x16xf32>
  %y = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x4xf32>, tensor<4x4x16xf32>) -> tensor<1x10x16xf32>
  return %y : tensor<1x10x16xf32>
}

// Other factors, and single features, stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: lhs_dilate = [2]
func.func @others(%x: tensor<1x5x4xf32>, %w: tensor<4x4x16xf32>, %u: tensor<1x5x4xbf16>, %v: tensor<4x1x16xbf16>)
    -> (tensor<1x10x16xf32>, tensor<1x10x16xbf16>) {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x4xf32>, tensor<4x4x16xf32>) -> tensor<1x10x16xf32>
  %z = stablehlo.convolution(%u, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
    : (tensor<1x5x4xbf16>, tensor<4x1x16xbf16>) -> tensor<1x10x16xbf16>
  return %y, %z : tensor<1x10x16xf32>, tensor<1x10x16xbf16>
}

// Phases of many features are computed where they are, with features last, of the weights too.
// CHECK-LABEL: func.func @in_place
// CHECK: %[[X:.*]] = stablehlo.transpose %{{.*}}, dims = [0, 2, 1]
// CHECK: %[[W:.*]] = stablehlo.transpose %{{.*}}, dims = [2, 1, 0]
// CHECK: stablehlo.convolution(%[[X]], %[[W]]) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f]
// CHECK-SAME: lhs_dilate = [2]
// CHECK: stablehlo.transpose %{{.*}}, dims = [0, 2, 1] : (tensor<1x10x16xf32>) -> tensor<1x16x10xf32>
func.func @in_place(%x: tensor<1x8x5xbf16>, %w: tensor<16x8x4xbf16>) -> tensor<1x16x10xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x8x5xbf16>, tensor<16x8x4xbf16>) -> tensor<1x16x10xf32>
  return %y : tensor<1x16x10xf32>
}
