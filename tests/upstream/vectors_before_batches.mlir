// A gather whose index vectors lie before a dimension of batches crashes the compiler.
// cause: The conversion of gathers to linalg (GatherConversion) adds to an index that is not there. With the index
// cause: vectors along the last dimension it compiles.
// fault: crash
func.func @main(%x: tensor<3x4xf32>, %i: tensor<1x3xi32>) -> tensor<3xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
    operand_batching_dims = [0], start_indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 0>,
    slice_sizes = array<i64: 1, 1>}> : (tensor<3x4xf32>, tensor<1x3xi32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
