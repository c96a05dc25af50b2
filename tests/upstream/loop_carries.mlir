// A carry that takes over another one in a loop that does not count crashes the compiler.
// cause: %u takes over %t. The loop does not count, so it stays an scf.while. The size of %t is carried for %u as
// cause: well, then folded on one side, so that both regions disagree in the number of carries; ScfWhileOpConversion,
// cause: which does not check it, then writes beyond its types. A select that never selects the old value, in place
// cause: of %t, keeps both sides alike.
// fault: crash
// input: 8xf32=1
// input: f32=0
// input: f32=1
// input: f32=9
// expected: 8xf32=32
// expected: f32=10
// expected: f32=8
func.func @main(%y0: tensor<8xf32>, %t0: tensor<f32>, %u0: tensor<f32>, %n: tensor<f32>)
    -> (tensor<8xf32>, tensor<f32>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %r:3 = stablehlo.while(%y = %y0, %t = %t0, %u = %u0) : tensor<8xf32>, tensor<f32>, tensor<f32>
    cond {
      %p = stablehlo.compare LT, %t, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %a = stablehlo.add %y, %y : tensor<8xf32>
      %b = stablehlo.add %t, %two : tensor<f32>
      stablehlo.return %a, %b, %t : tensor<8xf32>, tensor<f32>, tensor<f32>
    }
  return %r#0, %r#1, %r#2 : tensor<8xf32>, tensor<f32>, tensor<f32>
}
