// The greatest bf16 of rows has no SPIR-V.
// cause: Each invocation takes several numbers of 16 bits at a time, which are loaded as vectors of f32 and bitcast.
// cause: The bitcast of these vectors to bf16 is not converted. Rows of 1,024 elements end with "failed to legalize
// cause: operation 'vector.bitcast'", as in iree-org/iree#22717 for products of f16. The maximum in f32, with
// cause: conversions, compiles.
// target: volta
// fault: compile-error "'spirv.Bitcast' op mismatch in result type bitwidth 32 and operand type bitwidth 16"
func.func @main(%x: tensor<64x128xbf16>) -> tensor<64xbf16> {
  %low = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %r = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<64x128xbf16>, tensor<bf16>) -> tensor<64xbf16>
  return %r : tensor<64xbf16>
}
