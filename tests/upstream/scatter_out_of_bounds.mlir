// A scatter writes wherever an index points; XLA leaves the update out.
// cause: stablehlo.scatter becomes iree_linalg_ext.scatter, which assumes that all indices are in bounds. StableHLO
// cause: leaves such updates out. The closed pull request iree-org/iree#15656 wanted to check the indices. A write
// cause: out of bounds corrupts the heap of the process.
// fault: run-crash
// input: 4xi32=1 2 3 4
// input: 1x1xi32=-1
// expected: 4xi32=1 2 3 4
func.func @main(%x: tensor<4xi32>, %i: tensor<1x1xi32>) -> tensor<4xi32> {
  %u = stablehlo.constant dense<9> : tensor<1xi32>
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      stablehlo.return %b : tensor<i32>
  }) : (tensor<4xi32>, tensor<1x1xi32>, tensor<1xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
