// A small constant of bf16 has no SPIR-V.
// cause: The constant is put into the code of the dispatch. bf16 is emulated there by 16-bit integers, and the array
// cause: of the constant becomes one of 32 bits, whose elements are read as if they had 16. It fails for devices with
// cause: storage of 16 bits (volta, rdna3, llvmpipe), and compiles for vp_android_baseline_2022. The constant as f32,
// cause: with a conversion to bf16, compiles.
// target: volta
// fault: compile-error "'spirv.Bitcast' op mismatch in result type bitwidth 16 and operand type bitwidth 32"
func.func @main(%x: tensor<3xbf16>) -> tensor<3xbf16> {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>
  %r = stablehlo.add %x, %c : tensor<3xbf16>
  return %r : tensor<3xbf16>
}
