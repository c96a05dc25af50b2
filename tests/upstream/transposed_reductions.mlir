// A transposition of one of several results of a reduction takes the initial value of that one alone.
// cause: A transposition is moved into the linalg.generic that computes its operand. The new operation gets the
// cause: transposed initial value of that result alone, without those of the other results: "'linalg.yield' op
// cause: expected number of yield values (2) to match".
// fault: compile-error "op expected number of yield values (2) to match"
// input: 3x4x3xf32=1
// expected: 3x3xi32=0
func.func @main(%x: tensor<3x4x3xf32>) -> tensor<3x3xi32> {
  %positions = stablehlo.iota dim = 1 : tensor<3x4x3xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %low), (%positions init: %zero) across dimensions = [1]
      : (tensor<3x4x3xf32>, tensor<3x4x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x3xf32>, tensor<3x3xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %most = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
      %place = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %most, %place : tensor<f32>, tensor<i32>
    }
  %t = stablehlo.transpose %r#1, dims = [1, 0] : (tensor<3x3xi32>) -> tensor<3x3xi32>
  return %t : tensor<3x3xi32>
}
