// A conditional is moved before a dispatch, and what its branch reads is not.
// cause: EmplaceAllocations lets the dispatch of %d write into the concatenation. Before, it moves what makes the rest of
// cause: the concatenation ahead of the dispatch. tryMoveProducerBefore moves the operands of each operation with it,
// cause: but not what its regions read from around it: the scf.if arrives ahead of %v. So do loops, and paddings and
// cause: slices to update whose other operands need one. With the operands of the concatenation in the other order it
// cause: compiles.
// fault: compile-error "does not dominate this use"
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %p: tensor<i1>) -> tensor<16x8xf32> {
  %d = stablehlo.dot %x, %y : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %v = stablehlo.dot %y, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = "stablehlo.if"(%p) ({
    %s = stablehlo.dot %v, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %s : tensor<8x8xf32>
  }, {
    stablehlo.return %x : tensor<8x8xf32>
  }) : (tensor<i1>) -> tensor<8x8xf32>
  %z = stablehlo.concatenate %r, %d, dim = 0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  return %z : tensor<16x8xf32>
}
