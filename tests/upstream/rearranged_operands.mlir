// The second function of a transposed array loses the transposition, where the first one has another reader.
// cause: ReorderElementwiseAndShapeOp of StableHLO moves a function before the transposition or reshape of its
// cause: operand, if that has one reader. During the conversion to linalg such an array may be down to its last reader,
// cause: because the others are converted already: the types before and after are mixed up then. Square arrays lose
// cause: their transposition; others end with "failed to legalize operation", as for a softmax of bf16 beside its
// cause: logarithm. Without %b, the only other reader of %s, the results are right.
// fault: wrong
// input: 2x2xf32=1 4 9 16
// expected: 2x2x3xf32=0.36787944 0.36787944 0.36787944 0.049787067 0.049787067 0.049787067 0.135335281 0.135335281 0.135335281 0.018315639 0.018315639 0.018315639
// expected: 2x2x3xf32=-1 -1 -1 -3 -3 -3 -2 -2 -2 -4 -4 -4
func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2x3xf32>, tensor<2x2x3xf32>) {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %s = stablehlo.sqrt %t : tensor<2x2xf32>
  %m = stablehlo.negate %s : tensor<2x2xf32>
  %e = stablehlo.exponential %m : tensor<2x2xf32>
  %a = stablehlo.broadcast_in_dim %e, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x3xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x3xf32>
  %n = stablehlo.negate %b : tensor<2x2x3xf32>
  return %a, %n : tensor<2x2x3xf32>, tensor<2x2x3xf32>
}
