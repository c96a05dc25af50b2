// A convolution of f16 by groups of the batch whose window is one place has other elements, for CUDA.
// cause: It is a product by itself (matmul_like), whose accumulator is columns before rows: as of implicit products,
// cause: DistributeInnerTiledToLanes leaves out the attribute that says so, and a thread stores element 2 of what
// cause: mma.sync returns (8 rows below) as the neighbour of element 0. Here --iree-codegen-llvmgpu-use-igemm=false
// cause: changes nothing. Groups of features are right. The pattern is that of the two elements side by side.
// target: cuda
// flags: --iree-codegen-llvmgpu-use-igemm=false
// fault: code "(%\d+) = llvm\.extractelement (%\d+)\[[^\n]*\n[^\n]*extractelement \2\[[^\n]*\n\s*(%\d+) = llvm\.extractelement (?!\2\[).*insertelement \1, %\d+\[[^\n]*\n[^\n]*insertelement \3, .*masked\.scatter"
func.func @main(%x: tensor<4x7x16xf16>, %k: tensor<1x16x16xf16>) -> tensor<2x7x16xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
      : (tensor<4x7x16xf16>, tensor<1x16x16xf16>) -> tensor<2x7x16xf32>
  return %0 : tensor<2x7x16xf32>
}
