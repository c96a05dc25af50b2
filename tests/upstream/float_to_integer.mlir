// A float beyond the integer's range becomes any number; XLA saturates.
// fault: wrong
// input: 4xf32=300 -300 1e10 5
// expected: 4xi8=127 -128 127 5
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %r = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %r : tensor<4xi8>
}
