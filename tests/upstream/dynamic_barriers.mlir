// The size of what an optimization barrier passes on cannot be asked for.
// cause: tensor.dim of the result of an optimization barrier is not resolved to the dimension of its operand, and
// cause: remains until the end of the flow dialect. The message is that of iree-org/iree#19474, which is about
// cause: scf.for.
// fault: compile-error "'tensor.dim' op unexpected during shape cleanup"
// input: 2x4xf32=1
// expected: 2x4xf32=2
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = stablehlo.optimization_barrier %x : tensor<?x4xf32>
  %r = stablehlo.add %y, %y : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
