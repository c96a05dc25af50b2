// A reduction of positions beside an array that does not look at them gives the initial value.
// cause: Row r gets the bits of those positions only that are r modulo 4, so the vectorized tile lays the positions
// cause: (linalg.index of the reduced dimension) along the rows instead of along the columns. Other sizes return the
// cause: initial value. The same reductions as two operations are right.
// fault: wrong
// input: 64x100xf32=1
// expected: 64xf32=1
// expected: 64xi32=127
func.func @main(%x: tensor<64x100xf32>) -> (tensor<64xf32>, tensor<64xi32>) {
  %positions = stablehlo.iota dim = 1 : tensor<64x100xi32>
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %low), (%positions init: %zero) across dimensions = [1]
      : (tensor<64x100xf32>, tensor<64x100xi32>, tensor<f32>, tensor<i32>) -> (tensor<64xf32>, tensor<64xi32>)
    
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %most = stablehlo.maximum %a, %b : tensor<f32>
      %bits = stablehlo.or %i, %j : tensor<i32>
      stablehlo.return %most, %bits : tensor<f32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xi32>
}
