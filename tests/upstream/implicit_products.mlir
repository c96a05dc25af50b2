// A convolution of f16 by groups of the batch is zero at every other position, for CUDA.
// cause: As a product of tensor cores, the convolution has an iree_codegen.inner_tiled whose accumulator is permuted to
// cause: columns before rows (permutations = [.., [2, 0, 1], [2, 0, 1]]). DistributeInnerTiledToLanes leaves out the
// cause: attribute and keeps the permuted type of the accumulator. What mma.sync returns is then read as columns before
// cause: rows: a thread stores element 2 (8 rows below) as the neighbour of element 0, where element 1 belongs. Rows
// cause: from the 8th on are padding here, so that zeros are stored. With --iree-codegen-llvmgpu-use-igemm=false it is
// cause: right. The pattern is that of the two elements side by side.
// target: cuda
// fault: code "(%\d+) = llvm\.extractelement (%\d+)\[[^\n]*\n[^\n]*extractelement \2\[[^\n]*\n\s*(%\d+) = llvm\.extractelement (?!\2\[).*insertelement \1, %\d+\[[^\n]*\n[^\n]*insertelement \3, .*masked\.scatter"
func.func @main(%x: tensor<2x4x1xf16>, %k: tensor<2x1x4xf16>) -> tensor<1x3x4xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
      : (tensor<2x4x1xf16>, tensor<2x1x4xf16>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}
