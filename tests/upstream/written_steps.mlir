// A padding with steps of computed numbers in a row has no SPIR-V.
// cause: The row is written into a subview of the padded array with its two dimensions. The pass that makes buffers
// cause: one-dimensional leaves it, and a cast between both types of the buffer remains. Behind an optimization barrier,
// cause: where nothing is computed in the same dispatch, it compiles.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "unresolved materialization"
func.func @main(%x: tensor<8x1xi64>, %y: tensor<8x1xi64>) -> tensor<8x2xi64> {
  %c = stablehlo.constant dense<0> : tensor<i64>
  %m = stablehlo.minimum %x, %y : tensor<8x1xi64>
  %p = stablehlo.pad %m, %c, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<8x1xi64>, tensor<i64>) -> tensor<8x2xi64>
  return %p : tensor<8x2xi64>
}
