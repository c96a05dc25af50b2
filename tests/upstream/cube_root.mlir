// The cube root of infinity is NaN.
// fault: wrong
// input: 1xf32=inf
// expected: 1xf32=inf
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %r = stablehlo.cbrt %x : tensor<1xf32>
  return %r : tensor<1xf32>
}
