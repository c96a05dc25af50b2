// A convolution whose one window does not reach the end of the padded image fails.
// cause: The convolution has room for one window, which does not reach the end of the padded image. The dimension of
// cause: the windows' places has size 1 and is folded away, and the image is then taken to be as long as the window:
// cause: "inferred input/output operand #1 has shape's dimension #0 to be 8, but found 7". A smaller or negative
// cause: padding, of the same meaning, compiles.
// fault: compile-error "op inferred input/output operand"
// input: 1x3x2x2xf32=1
// input: 4x3x7x7xf32=1
// expected: 1x4x1x1xf32=12
func.func @main(%x: tensor<1x3x2x2xf32>, %k: tensor<4x3x7x7xf32>) -> tensor<1x4x1x1xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [2, 2], pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x3x2x2xf32>, tensor<4x3x7x7xf32>) -> tensor<1x4x1x1xf32>
  return %0 : tensor<1x4x1x1xf32>
}
