// A product of bf16 is not distributed over the threads of an NVIDIA GPU.
// cause: The pass that distributes vectors over threads fails for products of bf16 whose result is bf16. With a result
// cause: of f32 it compiles. So it does with --iree-codegen-llvmgpu-use-vector-distribution=false.
// target: cuda
// fault: compile-error "failed to distribute"
func.func @main(%a: tensor<16x16xbf16>, %b: tensor<16x16xbf16>) -> tensor<16x16xbf16> {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
  return %p : tensor<16x16xbf16>
}
