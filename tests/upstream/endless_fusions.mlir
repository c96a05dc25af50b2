// A scatter of computed numbers is not compiled for CUDA at O2.
// cause: The greedy rewriting of fusion and hoisting in the dispatch (tile and fuse) apparently does not converge,
// cause: and ends at its limit of iterations. At O1 the program compiles. The sums of a batch normalization's
// cause: gradient were compiled without end at O2.
// target: cuda
// flags: --iree-opt-level=O2
// fault: compile-error "failed to apply fusion + hoisting patterns"
func.func @main(%i: tensor<64x1xi32>, %u: tensor<64xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  %v = stablehlo.multiply %u, %u : tensor<64xf32>
  %r = "stablehlo.scatter"(%zero, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>, tensor<64x1xi32>, tensor<64xf32>) -> tensor<8xf32>
  %q = stablehlo.negate %r : tensor<8xf32>
  return %q : tensor<8xf32>
}
