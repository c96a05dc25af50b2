// A product that reads bf16 has no SPIR-V.
// target: vulkan
// fault: compile-error "failed to legalize operation 'vector.bitcast'"
func.func @main(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}
