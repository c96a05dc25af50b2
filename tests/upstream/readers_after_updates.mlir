// An array is read after an update has overwritten it.
// cause: ScheduleConcurrency puts the update (stream.async.update, in place) and the square, which may run at once, into
// cause: one group. The copies into the concatenation read the updated array and fit into no group. The group is placed
// cause: before them although they stand before the update: no value of a copy goes into the group, and that the copies
// cause: read what the group overwrites is not looked at. --iree-stream-partitioning-favor=debug makes no groups.
// fault: wrong
// input: 4x1xf32=1 2 3 4
// input: 1x1xf32=50
// input: 3x1xf32=1 2 3
// expected: 4x3xf32=[-1 2 2][-1 4 4][-1 6 6][-1 8 8]
// expected: 3x1xf32=1 4 9
// expected: 4x1xf32=2 4 6 50
func.func @main(%x: tensor<4x1xf32>, %u: tensor<1x1xf32>, %y: tensor<3x1xf32>)
    -> (tensor<4x3xf32>, tensor<3x1xf32>, tensor<4x1xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %ones = stablehlo.constant dense<-1.0> : tensor<4x1xf32>
  %d = stablehlo.add %x, %x : tensor<4x1xf32>
  %c = stablehlo.concatenate %ones, %d, %d, dim = 1
      : (tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %s = stablehlo.multiply %y, %y : tensor<3x1xf32>
  %w = stablehlo.dynamic_update_slice %d, %u, %three, %zero
      : (tensor<4x1xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
  return %c, %s, %w : tensor<4x3xf32>, tensor<3x1xf32>, tensor<4x1xf32>
}
