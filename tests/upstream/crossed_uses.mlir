// A tile of a fused dispatch reads sums of other tiles before they are computed.
// cause: The reduction and the sum that reads it become one dispatch, which is cut into tiles of rows. A tile
// cause: computes its own rows of %s only. %b reads %s along the other dimension, so a tile reads rows that other
// cause: tiles have not computed yet. The fusion must not happen where a consumer reads the producer by an index
// cause: other than the tiled one. An optimization barrier on %s keeps the results right.
// fault: wrong
// input: 20x20xf32=1
// expected: 20x20xf32=40
func.func @main(%x: tensor<20x20xf32>) -> tensor<20x20xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<20x20xf32>, tensor<f32>) -> tensor<20xf32>
  %a = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<20xf32>) -> tensor<20x20xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<20xf32>) -> tensor<20x20xf32>
  %r = stablehlo.add %a, %b : tensor<20x20xf32>
  return %r : tensor<20x20xf32>
}
