// A window as long as its dimension becomes a scan, which leaves out the initial value.
// cause: A reduce_window as long as its dimension, padded by one less on one side, becomes iree_linalg_ext.scan with
// cause: inclusive(true). The initial value is its accumulator, but an inclusive scan begins with the first element
// cause: alone, so that the initial value takes no part. It need not be the identity of the reducer.
// fault: wrong
// input: 4xf32=1
// expected: 4xf32=10 10 10 10
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %init = stablehlo.constant dense<1.0e1> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %init) <{padding = dense<[[3, 0]]> : tensor<1x2xi64>,
      window_dimensions = array<i64: 4>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
