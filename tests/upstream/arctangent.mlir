// atan2 of two infinities is not a quarter of pi.
// cause: The polynomial approximation of math.atan2 divides the operands, so that two zeros or two infinities give
// cause: NaN. IEEE 754-2019, 9.2.1, defines all of these.
// fault: wrong
// input: 2xf32=inf 0
// input: 2xf32=inf -1
// expected: 2xf32=0.78539819 3.1415927
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.atan2 %x, %y : tensor<2xf32>
  return %r : tensor<2xf32>
}
