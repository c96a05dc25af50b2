// Each of 64 threads adds the update of a scatter to the same place.
// cause: The dispatch is launched with blocks of 64 threads, and each block computes one update: its place depends on
// cause: %ctaid alone, and the code reads no %tid. All threads of the block load the place, add and store it. They run
// cause: in warps, of which a later one may load what an earlier one has stored: the update is added more than once.
// target: cuda
// fault: code "known_block_size = array<i32: 64, 1, 1>(?!.*sreg\.tid).*llvm\.fadd.*llvm\.store"
func.func @main(%x: tensor<100x1xf32>, %i: tensor<64x1xi32>, %u: tensor<64x1xf32>) -> tensor<100x1xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<100x1xf32>, tensor<64x1xi32>, tensor<64x1xf32>) -> tensor<100x1xf32>
  return %r : tensor<100x1xf32>
}
