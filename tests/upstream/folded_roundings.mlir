// A conversion to bf16 and back is folded, so that nothing is rounded.
// cause: arith.extf of arith.truncf is folded to the operand at O2, although the truncation rounds. The program asks
// cause: for the rounding by its two conversions.
// flags: --iree-opt-level=O2
// fault: wrong
// input: 4x16xf32=1.01
// expected: 4xf32=1.0078125
func.func @main(%x: tensor<4x16xf32>) -> tensor<4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %b = stablehlo.convert %x : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %y = stablehlo.convert %b : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %r = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
