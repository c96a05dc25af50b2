// A dispatch that copies one of its results has no machine code.
// cause: The dispatch holds a slice and a scatter into it. The copy of the slice into the result is not distributed
// cause: to workgroups, which a later check refuses. It compiles with --iree-llvmcpu-disable-distribution. The
// cause: message was seen with other dispatches in iree-org/iree#21165 and #21828 (closed).
// flags: --iree-opt-level=O2
// fault: compile-error "restricted to workgroup distributed contexts"
func.func @main(%x: tensor<3x4xf32>, %i: tensor<1x1xi32>, %u: tensor<1xf32>) -> tensor<4xf32> {
  %s = stablehlo.slice %x [0:1, 0:4] : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %y = stablehlo.reshape %s : (tensor<1x4xf32>) -> tensor<4xf32>
  %r = "stablehlo.scatter"(%y, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) : (tensor<4xf32>, tensor<1x1xi32>, tensor<1xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
