// A conversion of a size to an unsigned type becomes invalid IR.
// cause: The conversions of the scalar are folded as a computation of shapes. The folded form is arith.extsi with the
// cause: result type ui64, which the verifier of arith refuses: the type of the result is not converted to the
// cause: signless one.
// fault: compile-error "must be signless-fixed-width-integer-like"
// input: 7xf32=1
// expected: ui64=7
func.func @main(%x: tensor<?xf32>) -> tensor<ui64> {
  %s = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %k = stablehlo.convert %s : (tensor<i32>) -> tensor<ui64>
  return %k : tensor<ui64>
}
