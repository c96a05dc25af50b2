// The sum of elements that a comparison with their index chooses is not compiled.
// cause: VectorDistribute deals a reduction out to the threads of a workgroup with what is computed before and after it,
// cause: but not linalg.index of it, which is vectorized into an array that no memory is allocated for. With the indices
// cause: as an operand of the dispatch the same reduction is compiled.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "failed to legalize operation 'memref.alloc'"
func.func @main(%x: tensor<64xf32>, %y: tensor<64xi32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<64xf32>
  %i = stablehlo.iota dim = 0 : tensor<64xi32>
  %m = stablehlo.compare EQ, %i, %y : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
  %c = stablehlo.select %m, %x, %zeros : tensor<64xi1>, tensor<64xf32>
  %r = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
