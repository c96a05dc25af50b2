// erf of a small normal number is zero.
// cause: chlo.erf is expanded to a polynomial that multiplies the operand by small constants first. IREE's workers run
// cause: with subnormals flushed to zero, so that these products vanish for numbers near the least normal one, whose erf
// cause: is 2 / sqrt(pi) times the number. XLA scales them.
// fault: wrong
// input: 2xf32=1e-37 2e-38
// expected: 2xf32=1.1283792 0.22567583
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %s = stablehlo.constant dense<1.0e37> : tensor<2xf32>
  %r = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
  %t = stablehlo.multiply %r, %s : tensor<2xf32>
  return %t : tensor<2xf32>
}
