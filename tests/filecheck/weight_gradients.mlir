// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T:%.+]] = stablehlo.transpose %arg1, dims = [2, 3, 0, 1] : (tensor<8x64x32x32xf32>) -> tensor<32x32x8x64xf32>
// CHECK-NEXT: [[V:%.+]] = stablehlo.convolution(%arg0, [[T]]) dim_numbers = [f, b, 0, 1]x[0, 1, i, o]->[b, 0, 1, f]
// CHECK-SAME: pad = {{\[\[}}1, 1], [1, 1]]
// CHECK-SAME: -> tensor<16x3x3x64xf32>
// CHECK-NEXT: stablehlo.transpose [[V]], dims = [3, 0, 1, 2] : (tensor<16x3x3x64xf32>) -> tensor<64x16x3x3xf32>
func.func @main(%x: tensor<8x16x32x32xf32>, %g: tensor<8x64x32x32xf32>) -> tensor<64x16x3x3xf32> {
  %r = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x16x32x32xf32>, tensor<8x64x32x32xf32>) -> tensor<64x16x3x3xf32>
  return %r : tensor<64x16x3x3xf32>
}

// Rows of pixels fill vectors, features do not, or windows are those of layers.
// CHECK-LABEL: func.func @others
// CHECK-NOT: stablehlo.transpose
// CHECK: return
func.func @others(%x: tensor<8x16x32x32xf32>, %w: tensor<64x16x3x3xf32>, %g: tensor<8x4x32x32xf32>, %y: tensor<8x16x7x7xf32>) -> (tensor<8x64x32x32xf32>, tensor<4x16x3x3xf32>, tensor<8x64x7x7xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x16x32x32xf32>, tensor<64x16x3x3xf32>) -> tensor<8x64x32x32xf32>
  %1 = stablehlo.convolution(%x, %g) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x16x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<4x16x3x3xf32>
  %2 = stablehlo.convolution(%y, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x16x7x7xf32>, tensor<64x16x3x3xf32>) -> tensor<8x64x7x7xf32>
  return %0, %1, %2 : tensor<8x64x32x32xf32>, tensor<4x16x3x3xf32>, tensor<8x64x7x7xf32>
}
