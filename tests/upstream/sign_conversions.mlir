// A conversion of a size to an unsigned type becomes invalid IR.
// fault: compile-error "must be signless-fixed-width-integer-like"
// input: 7xf32=1
// expected: ui64=7
func.func @main(%x: tensor<?xf32>) -> tensor<ui64> {
  %s = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %k = stablehlo.convert %s : (tensor<i32>) -> tensor<ui64>
  return %k : tensor<ui64>
}
