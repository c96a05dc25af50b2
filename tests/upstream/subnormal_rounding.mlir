// The floor of a negative subnormal number is not -1.
// fault: wrong
// input: 1xf32=-1e-40
// expected: 1xf32=-1
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %r = stablehlo.floor %x : tensor<1xf32>
  return %r : tensor<1xf32>
}
