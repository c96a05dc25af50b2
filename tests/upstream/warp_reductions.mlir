// A sum of two dimensions of products with a row is the sum of the first warp alone, for CUDA.
// cause: Each of the 7 warps of a block sums a column (32 rows), and its first thread stores the sum in the block's
// cause: memory, at the warp's number. Behind the barrier only the first of these 7 numbers is loaded, and stored as
// cause: the result: the sum over warps is left out. With
// cause: --iree-codegen-llvmgpu-use-reduction-vector-distribution=false all are summed. The same distribution fails
// cause: ("failed to distribute") for sums of i32 or f32 widened to 64 bits.
// target: cuda
// fault: code "llvm\.store [^\n]*ptr<3>.*nvvm\.barrier(?!.*shfl)(?!.*load [^\n]*ptr<3>.*load [^\n]*ptr<3>).*load [^\n]*ptr<3> -> vector<1xf32>"
func.func @main(%x: tensor<32x7xf32>, %v: tensor<7xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<7xf32>) -> tensor<32x7xf32>
  %p = stablehlo.multiply %x, %t : tensor<32x7xf32>
  %s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x7xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}
