// The NaN of f8E4M3FN is read as -480.
// cause: The expansion of arith.extf for f8E4M3FN treats its only NaN, all bits of exponent and mantissa set, as a
// cause: finite number. Six of the eleven formats of StableHLO with 4, 6 and 8 bits are refused altogether.
// fault: wrong
// input: 1xi8=-1
// expected: 1xi32=1
func.func @main(%x: tensor<1xi8>) -> tensor<1xi32> {
  %f = stablehlo.bitcast_convert %x : (tensor<1xi8>) -> tensor<1xf8E4M3FN>
  %w = stablehlo.convert %f : (tensor<1xf8E4M3FN>) -> tensor<1xf32>
  %p = stablehlo.compare NE, %w, %w : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
  %r = stablehlo.convert %p : (tensor<1xi1>) -> tensor<1xi32>
  return %r : tensor<1xi32>
}
