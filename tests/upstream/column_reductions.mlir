// Has no SPIR-V for the greatest number of each column, subtracted from the column, for Vulkan.
// cause: One dispatch reduces 64 rows of 8 numbers and reads them again. Its vectors have 32 elements; SPIR-V has vectors
// cause: of up to 4, or 16 for kernels, and nothing splits a constant of such a vector.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "failed to legalize operation 'arith.constant'"
func.func @main(%x: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0]
      : (tensor<64x8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<64x8xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<64x8xf32>
  return %2 : tensor<64x8xf32>
}
