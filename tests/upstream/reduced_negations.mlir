// A sum of negated floats has no SPIR-V.
// cause: A canonicalization of arith makes arith.subf of an addition of arith.negf, in the computation of the reduction.
// cause: LLVMGPUVectorDistribute asks for the identity of the combining operation (arith::getNeutralElement), which a
// cause: difference has not. Products with -1 compile.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "Failed to get an identity value for the reduction operation"
func.func @main(%x: tensor<16x64xf32>) -> tensor<16xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %x : tensor<16x64xf32>
  %s = stablehlo.reduce(%n init: %c) applies stablehlo.add across dimensions = [1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<16xf32>
  return %s : tensor<16xf32>
}
