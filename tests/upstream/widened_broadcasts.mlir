// Two broadcasts of one reshape, each converted to wider floats, are refused.
// cause: iree-stablehlo-preprocessing moves both conversions before the broadcasts and merges them, after
// cause: iree-stablehlo-canonicalize has run. ReorderElementwiseAndShapeOp (Canonicalization.cpp) is also one of the
// cause: patterns of iree-stablehlo-to-iree-input: it moves the conversion before the reshape by setType and
// cause: replaceAllUsesWith, which a dialect conversion does not see, so that a cast of the reshape's old type is left.
// fault: compile-error "failed to legalize unresolved source materialization"
// input: 2x1x2xbf16=1 2 3 4
// expected: 2x1x2xf32=1 2 3 4
// expected: 2x2x2xf32=1 2 1 2 3 4 3 4
func.func @main(%x: tensor<2x1x2xbf16>) -> (tensor<2x1x2xf32>, tensor<2x2x2xf32>) {
  %v = stablehlo.reshape %x : (tensor<2x1x2xbf16>) -> tensor<2x2xbf16>
  %a = stablehlo.broadcast_in_dim %v, dims = [0, 2] : (tensor<2x2xbf16>) -> tensor<2x1x2xbf16>
  %0 = stablehlo.convert %a : (tensor<2x1x2xbf16>) -> tensor<2x1x2xf32>
  %b = stablehlo.broadcast_in_dim %v, dims = [0, 2] : (tensor<2x2xbf16>) -> tensor<2x2x2xbf16>
  %1 = stablehlo.convert %b : (tensor<2x2x2xbf16>) -> tensor<2x2x2xf32>
  return %0, %1 : tensor<2x1x2xf32>, tensor<2x2x2xf32>
}
