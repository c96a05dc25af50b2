// A slice of a product with a small constant array has no code for CUDA.
// cause: IREE puts constants of up to 256 bytes into the kernel, and the slice onto them: a tensor.extract_slice of an
// cause: arith.constant, which has no buffer that it could be read from at an offset. Before GPUPadConvsPass, the slice
// cause: sinks through the linalg.generic: the other operand is padded to the whole size, the workers compute the whole
// cause: array in private memory, and the slice of that is copied to the result outside of the scf.forall.
// cause: VerifyWorkgroupDistributionPass refuses it. Slices whose place is known at run time do the same. With
// cause: --iree-flow-inline-constants-max-byte-length=0 it compiles.
// target: cuda
// fault: compile-error "write affecting operations on global resources are restricted to workgroup distributed contexts"
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<[3.0, 4.0, 5.0, 6.0]> : tensor<4xf32>
  %p = stablehlo.multiply %c, %x : tensor<4xf32>
  %s = stablehlo.slice %p [1:3] : (tensor<4xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
