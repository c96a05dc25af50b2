// A running sum of 64-bit numbers of five dimensions has no SPIR-V.
// cause: iree_linalg_ext.scan is tiled and decomposed to reads of vectors of five dimensions. Those of 64-bit numbers
// cause: are left as they are, and the conversion to SPIR-V takes vectors of one dimension only.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "'vector.transfer_read' op with rank > 1 should be broken down by prior passes"
func.func @main(%x: tensor<2x4x3x3x4xi64>) -> tensor<2x4x3x3x4xi64> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2, 1, 1, 1, 1>,
      padding = dense<[[1, 0], [0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<5x2xi64>}> ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %s = stablehlo.add %a, %b : tensor<i64>
      stablehlo.return %s : tensor<i64>
  }) : (tensor<2x4x3x3x4xi64>, tensor<i64>) -> tensor<2x4x3x3x4xi64>
  return %r : tensor<2x4x3x3x4xi64>
}
