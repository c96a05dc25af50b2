// RUN: hloforge opt %s --pass=legalize-transposed-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.dot_general %{{.+}}, %{{.+}}, contracting_dims = [1] x [0]
// CHECK-SAME: (tensor<112x64xf32>, tensor<64x12xf32>) -> tensor<112x12xf32>
// CHECK: [[Y:%.+]] = stablehlo.reshape {{.+}} -> tensor<8x14x3x4xf32>
// CHECK: stablehlo.slice [[Y]] [0:8, 0:14, 0:1, 0:4]
// CHECK: stablehlo.slice [[Y]] [0:8, 0:14, 2:3, 0:4]
// CHECK: stablehlo.add
// CHECK: stablehlo.slice [[Y]] [0:8, 0:14, 1:2, 0:4]
// CHECK: stablehlo.concatenate {{.+}} -> tensor<8x15x2x4xf32>
// CHECK: stablehlo.slice {{.+}} -> tensor<8x29x4xf32>
func.func @main(%x: tensor<8x14x64xf32>, %w: tensor<3x64x4xf32>, %v: tensor<2x64x32xf32>) -> (tensor<8x29x4xf32>, tensor<8x28x32xf32>) {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x29x4xf32>
  // Phases of equal windows, whose columns fill vectors.
  // CHECK: stablehlo.convolution(%arg0, %arg2)
  %s = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x14x64xf32>, tensor<2x64x32xf32>) -> tensor<8x28x32xf32>
  return %r, %s : tensor<8x29x4xf32>, tensor<8x28x32xf32>
}

// Features first, and a size that is no multiple of the gaps: a longer result is cut.
// CHECK-LABEL: func.func @first
// CHECK: [[L:%.+]] = stablehlo.convolution(%{{.+}}, %{{.+}}) {{.+}}pad = {{\[\[}}2, 3]], lhs_dilate = [2]
// CHECK-SAME: -> tensor<1x16x30xf32>
// CHECK: stablehlo.slice [[L]] [0:1, 0:16, 0:29]
func.func @first(%x: tensor<1x32x14xf32>, %w: tensor<16x32x3xf32>) -> tensor<1x16x29xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x14xf32>, tensor<16x32x3xf32>) -> tensor<1x16x29xf32>
  return %r : tensor<1x16x29xf32>
}

// Windows with gaps, and features first: so is the product, of which each phase reads a position.
// CHECK-LABEL: func.func @gaps
// CHECK: stablehlo.dot_general %{{.+}}, %{{.+}}, contracting_dims = [1] x [0]
// CHECK-SAME: (tensor<48x32xf32>, tensor<32x14xf32>) -> tensor<48x14xf32>
// CHECK-NOT: stablehlo.convolution
// CHECK: return
func.func @gaps(%x: tensor<1x32x14xf32>, %w: tensor<16x32x3xf32>) -> tensor<1x16x31xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[5, 5]], lhs_dilate = [2], rhs_dilate = [3]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x14xf32>, tensor<16x32x3xf32>) -> tensor<1x16x31xf32>
  return %r : tensor<1x16x31xf32>
}
