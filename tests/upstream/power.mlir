// The power of a negative base is NaN.
// cause: math.powf is expanded to exp(y * log(x)) for all x (compare iree-org/iree#19996 for constants as exponents).
// cause: It is NaN for negative x, although the power with a whole exponent is defined, and its relative error grows
// cause: with the exponent (290 ulp and more).
// fault: wrong
// input: 2xf32=-2 -3
// input: 2xf32=3 2
// expected: 2xf32=-8 9
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.power %x, %y : tensor<2xf32>
  return %r : tensor<2xf32>
}
