// A gather reads wherever an index points; XLA clamps it.
// fault: wrong
// input: 4xi32=3 4 5 6
// input: 1x1xi32=9
// expected: 1xi32=4
func.func @main(%x: tensor<4xi32>, %i: tensor<1x1xi32>) -> tensor<1xi32> {
  %y = stablehlo.slice %x [0:2] : (tensor<4xi32>) -> tensor<2xi32>
  %r = "stablehlo.gather"(%y, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
    : (tensor<2xi32>, tensor<1x1xi32>) -> tensor<1xi32>
  return %r : tensor<1xi32>
}
