// The sum of a window that is an array of three dimensions has no SPIR-V.
// cause: The window's sum is kept in memory that the workgroup shares. What copies it to the result (memref.copy, with the mark
// cause: of a linalg operation) is not lowered. The same window over two dimensions, and stablehlo.reduce, compile.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "failed to legalize operation 'memref.copy'"
func.func @main(%x: tensor<2x2x2xf32>) -> tensor<1x1x1xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 2, 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x2x2xf32>, tensor<f32>) -> tensor<1x1x1xf32>
  return %w : tensor<1x1x1xf32>
}
