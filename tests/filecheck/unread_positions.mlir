// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// Of three positions of a window, 24 apart, the outer ones lie beside the 16 numbers of the image.
// CHECK-LABEL: func.func @main
// CHECK: [[W:%.+]] = stablehlo.slice %arg1 [1:2, 0:4, 0:4] : (tensor<3x4x4xf32>) -> tensor<1x4x4xf32>
// CHECK: stablehlo.convolution(%arg0, [[W]])
func.func @main(%x: tensor<8x16x4xf32>, %w: tensor<3x4x4xf32>) -> tensor<8x16x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[24, 24]], rhs_dilate = [24]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x16x4xf32>, tensor<3x4x4xf32>) -> tensor<8x16x4xf32>
  return %r : tensor<8x16x4xf32>
}
