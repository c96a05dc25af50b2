// The reversal of the window of a convolution by channels is left out.
// cause: The convolution becomes linalg.depthwise_conv_1d_nwc_wc, whose operands are the image and the kernel as it
// cause: is: the lowering ignores window_reversal (stablehlo.convolution with reverse = [true]). Without feature
// cause: groups the kernel is reversed. A stablehlo.reverse of the kernel instead gives the expected results.
// fault: wrong
// input: 1x4x2xf32=1 1 2 2 3 3 4 4
// input: 2x1x2xf32=1 1 10 10
// expected: 1x3x2xf32=12 12 23 23 34 34
func.func @main(%x: tensor<1x4x2xf32>, %k: tensor<2x1x2xf32>) -> tensor<1x3x2xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {reverse = [true]}
      {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
      : (tensor<1x4x2xf32>, tensor<2x1x2xf32>) -> tensor<1x3x2xf32>
  return %0 : tensor<1x3x2xf32>
}
