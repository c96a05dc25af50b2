// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reverse %{{.+}}, dims = [0] : tensor<3x16x4xf32>
// CHECK-NOT: stablehlo.convolution
// CHECK: stablehlo.dot_general
func.func @main(%x: tensor<8x1x16xf32>, %w: tensor<3x16x4xf32>) -> tensor<8x3x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 2]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x1x16xf32>, tensor<3x16x4xf32>) -> tensor<8x3x4xf32>
  return %r : tensor<8x3x4xf32>
}

// Windows that sum over positions stay.
// CHECK-LABEL: func.func @windows
// CHECK: stablehlo.convolution
func.func @windows(%x: tensor<8x4x16xf32>, %w: tensor<3x16x4xf32>) -> tensor<8x2x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x4x16xf32>, tensor<3x16x4xf32>) -> tensor<8x2x4xf32>
  return %r : tensor<8x2x4xf32>
}
