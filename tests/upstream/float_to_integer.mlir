// A float beyond the integer's range becomes any number; XLA saturates.
// cause: stablehlo.convert becomes arith.fptosi, whose result is poison beyond the range of the integer. XLA
// cause: saturates, and gives 0 for NaN; programs of JAX rely on it. StableHLO's text leaves this to the
// cause: implementation (openxla/stablehlo#180), so this is a difference from XLA rather than a breach of the
// cause: specification.
// fault: wrong
// input: 4xf32=300 -300 1e10 5
// expected: 4xi8=127 -128 127 5
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %r = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %r : tensor<4xi8>
}
