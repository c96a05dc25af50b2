// A reversal of a slice with steps has no machine code.
// cause: The slice with steps is fused into the dispatch that reads it by index. A builtin.unrealized_conversion_cast
// cause: from i64 to index remains there, of which no machine code can be made. An optimization barrier between the
// cause: two keeps them apart, and then it compiles.
// fault: compile-error "failed to translate the MLIR LLVM dialect"
// input: 5x7xf32=1
// expected: 3x2xf32=1
func.func @main(%x: tensor<5x7xf32>) -> tensor<3x2xf32> {
  %s = stablehlo.slice %x [0:5:2, 1:7:3] : (tensor<5x7xf32>) -> tensor<3x2xf32>
  %r = stablehlo.reverse %s, dims = [0] : tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}
