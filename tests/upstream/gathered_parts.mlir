// What an index chooses from a part of each row is read as if the part were the whole array.
// cause: The gather is vectorized (llvm.intr.masked.gather), and its offsets are computed from the shape of the slice:
// cause: index * 7 + i, though the rows of the array that it reads are 11 elements apart.
// target: cuda
// fault: code "constant\(7 : i64\).*masked\.gather"
func.func @main(%x: tensor<8x11xf32>, %i: tensor<1xi64>) -> tensor<7xf32> {
  %s = stablehlo.slice %x [0:8, 0:7] : (tensor<8x11xf32>) -> tensor<8x7xf32>
  %r = "stablehlo.gather"(%s, %i) <{
    dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>,
    slice_sizes = array<i64: 1, 7>}> : (tensor<8x7xf32>, tensor<1xi64>) -> tensor<7xf32>
  return %r : tensor<7xf32>
}
