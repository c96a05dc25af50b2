// A reduction of the precision of a dynamic array crashes the compiler.
// cause: The compiler ends by report_fatal_error ("LLVM ERROR: could not reify"), below the conversion of StableHLO to
// cause: linalg: the dynamic sizes of the result are not known where they are asked for. Static sizes compile.
// fault: crash
// input: 2xf32=1 2
// expected: 2xf32=1 2
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = stablehlo.reduce_precision %x, format = e8m7 : tensor<?xf32>
  return %r : tensor<?xf32>
}
