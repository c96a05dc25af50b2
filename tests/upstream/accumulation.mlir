// A sum of 16-bit floats rounds each partial sum: 2048 + 1 stays 2048 in f16.
// cause: The linalg.generic of the reduction accumulates in its element type, so that each partial sum is rounded to
// cause: f16. XLA accumulates sums of 16 bits in f32.
// fault: wrong
// input: 4096xf16=1
// expected: f16=4096
func.func @main(%x: tensor<4096xf16>) -> tensor<f16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4096xf16>, tensor<f16>) -> tensor<f16>
  return %s : tensor<f16>
}
