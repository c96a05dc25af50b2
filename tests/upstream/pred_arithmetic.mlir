// The sum of two booleans is computed modulo 2.
// cause: stablehlo.add of i1 becomes arith.addi of i1. StableHLO defines the sum of booleans as the logical or.
// fault: wrong
// input: 2xi32=1 0
// input: 2xi32=1 1
// expected: 2xi32=1 1
func.func @main(%x: tensor<2xi32>, %y: tensor<2xi32>) -> tensor<2xi32> {
  %zero = stablehlo.constant dense<0> : tensor<2xi32>
  %p = stablehlo.compare NE, %x, %zero : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  %q = stablehlo.compare NE, %y, %zero : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  %s = stablehlo.add %p, %q : tensor<2xi1>
  %r = stablehlo.convert %s : (tensor<2xi1>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}
