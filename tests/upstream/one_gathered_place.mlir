// An array that is returned beside a gather of its first row has that row alone.
// cause: The gather becomes a linalg.generic that reads y by (d0, d1) -> (0, d1). FuseMultiUseElementwiseProducer fuses
// cause: the addition with it, and keeps y as a second result of the fused operation, also by (d0, d1) -> (0, d1): only
// cause: the first row of y is written. A producer with other readers must not be fused through a map that does not
// cause: reach each of its positions.
// fault: wrong
// input: 4x3xi32=1 2 3 4 5 6 7 8 9 10 11 12
// input: 4x1xi32=0
// expected: 4x3xi32=2 4 6 8 10 12 14 16 18 20 22 24
// expected: 4x3xi32=2 4 6 2 4 6 2 4 6 2 4 6
func.func @main(%x: tensor<4x3xi32>, %i: tensor<4x1xi32>) -> (tensor<4x3xi32>, tensor<4x3xi32>) {
  %y = stablehlo.add %x, %x : tensor<4x3xi32>
  %r = "stablehlo.gather"(%y, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}>
    : (tensor<4x3xi32>, tensor<4x1xi32>) -> tensor<4x3xi32>
  return %y, %r : tensor<4x3xi32>, tensor<4x3xi32>
}
