// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reshape %{{.+}} : (tensor<8x3x512xbf16>) -> tensor<8x3x32x16xbf16>
// CHECK-NOT: stablehlo.convolution
// CHECK: stablehlo.dot_general
func.func @main(%x: tensor<8x3x512xbf16>, %w: tensor<64x3x16xbf16>) -> tensor<8x64x32xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [16]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x3x512xbf16>, tensor<64x3x16xbf16>) -> tensor<8x64x32xf32>
  return %r : tensor<8x64x32xf32>
}

// Windows that overlap stay.
// CHECK-LABEL: func.func @overlapping
// CHECK: stablehlo.convolution
func.func @overlapping(%x: tensor<8x3x512xbf16>, %w: tensor<64x3x16xbf16>) -> tensor<8x64x63xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [8]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x3x512xbf16>, tensor<64x3x16xbf16>) -> tensor<8x64x63xf32>
  return %r : tensor<8x64x63xf32>
}
