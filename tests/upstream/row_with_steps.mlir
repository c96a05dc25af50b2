// Arithmetic on steps of one row of an array has no SPIR-V.
// cause: The row is a subview of the array with its two dimensions. The pass that makes buffers one-dimensional leaves
// cause: it, and a cast between both types of the buffer remains. Of the array without its shape it compiles.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "unresolved materialization"
func.func @main(%x: tensor<2x16xf32>) -> tensor<8xf32> {
  %s = stablehlo.slice %x [1:2, 0:16:2] : (tensor<2x16xf32>) -> tensor<1x8xf32>
  %r = stablehlo.reshape %s : (tensor<1x8xf32>) -> tensor<8xf32>
  %n = stablehlo.negate %r : tensor<8xf32>
  return %n : tensor<8xf32>
}
