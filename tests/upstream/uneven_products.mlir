// A batch of uneven products of bf16 reads beyond its factors, for CUDA.
// cause: For tensor cores, TileAndFuse pads tiles (padding = [4, 16, 8, 128] here). A row that does not exist is read
// cause: from the place behind the last row, and zeros replace it afterwards. Its loads have no predicate: in the last
// cause: product of the batch they leave the array. With --iree-codegen-llvmgpu-use-tile-and-fuse-matmul=false there is
// cause: no padding.
// target: cuda
// fault: code "llvm\.func(?:(?!llvm\.cond_br|masked\.load)[\s\S])*?llvm\.load [^\n]*vector<8xbf16>[\s\S]*mma\.sync"
func.func @main(%x: tensor<8x1x128xbf16>, %y: tensor<8x128x4xbf16>) -> tensor<8x1x4xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<8x1x128xbf16>, tensor<8x128x4xbf16>) -> tensor<8x1x4xf32>
  return %0 : tensor<8x1x4xf32>
}
