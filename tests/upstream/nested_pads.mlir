// A padding of what another padding spreads puts the elements side by side.
// cause: FoldSuccessiveTensorInsertSliceOps of the pass iree-dispatch-creation-fusion-preprocessing replaces an
// cause: insertion into a fill, of an insertion into a fill with the same value, by one of unit strides. It checks the
// cause: strides of the outer insertion twice, and those of the inner one never.
// fault: wrong
// input: 3xf32=1 4 9
// expected: 6xf32=-1 0 -4 0 -9 0
func.func @main(%x: tensor<3xf32>) -> tensor<6xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %x : tensor<3xf32>
  %p = stablehlo.pad %n, %z, low = [0], high = [0], interior = [1] : (tensor<3xf32>, tensor<f32>) -> tensor<5xf32>
  %r = stablehlo.pad %p, %z, low = [0], high = [1], interior = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}
