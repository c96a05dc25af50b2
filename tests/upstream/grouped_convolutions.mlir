// A convolution by groups adds to places of the result that another invocation sets to zero.
// cause: The result is filled with zeros by invocations along one dimension of the workgroup, each of which fills
// cause: places in a loop. The sums are then given to the invocations along two dimensions, and add to places that
// cause: others have filled, without a barrier between the two. Fills that come late remove sums. Parts of the result
// cause: stay zero on Mesa's lavapipe.
// target: volta
// fault: code "spirv\.Store "StorageBuffer" %\w+, %cst_f32 (?!.*ControlBarrier).*spirv\.FAdd.*spirv\.Store "StorageBuffer""
func.func @main(%x: tensor<2x9x4xf32>, %k: tensor<3x2x6xf32>) -> tensor<2x7x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
      : (tensor<2x9x4xf32>, tensor<3x2x6xf32>) -> tensor<2x7x6xf32>
  return %r : tensor<2x7x6xf32>
}
