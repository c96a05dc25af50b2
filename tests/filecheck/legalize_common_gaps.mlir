// RUN: hloforge opt %s --pass=legalize-common-gaps | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = stablehlo.convolution(%arg0, %arg1)
// CHECK-SAME: pad = {{\[\[}}2, 2]], lhs_dilate = [1], rhs_dilate = [1]
// CHECK-SAME: -> tensor<8x16x4xf32>
// CHECK: stablehlo.pad [[Y]], {{.+}}, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 1, 0] : {{.+}} -> tensor<8x31x4xf32>
func.func @main(%x: tensor<8x14x64xf32>, %w: tensor<3x64x4xf32>) -> tensor<8x31x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[4, 4]], lhs_dilate = [2], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x31x4xf32>
  return %r : tensor<8x31x4xf32>
}

// What is left has no common divisor. The first result that a weight reaches is the second one.
// CHECK-LABEL: func.func @rest
// CHECK: stablehlo.convolution(%arg0, %arg1)
// CHECK-SAME: lhs_dilate = [2], rhs_dilate = [3]
// CHECK: stablehlo.pad {{.+}} low = [0, 1, 0]
func.func @rest(%x: tensor<8x14x64xf32>, %w: tensor<3x64x4xf32>) -> tensor<8x46x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[3, 2]], lhs_dilate = [4], rhs_dilate = [6]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x46x4xf32>
  return %r : tensor<8x46x4xf32>
}

// Other divisors, and strides, stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT: stablehlo.pad
func.func @others(%x: tensor<8x14x64xf32>, %w: tensor<3x64x4xf32>) -> (tensor<8x40x4xf32>, tensor<8x14x4xf32>) {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[2, 2]], lhs_dilate = [3], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x40x4xf32>
  %s = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [2], pad = [[2, 2]], lhs_dilate = [2], rhs_dilate = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x14x4xf32>
  return %r, %s : tensor<8x40x4xf32>, tensor<8x14x4xf32>
}
