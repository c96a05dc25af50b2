// The power of a negative base is NaN.
// fault: wrong
// input: 2xf32=-2 -3
// input: 2xf32=3 2
// expected: 2xf32=-8 9
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.power %x, %y : tensor<2xf32>
  return %r : tensor<2xf32>
}
