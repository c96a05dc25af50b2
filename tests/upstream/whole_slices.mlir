// A whole array that a loop overwrites unread is refused, in a loop that does not count.
// cause: The loop does not count, so it stays an scf.while. The update replaces the whole array and is folded; the
// cause: carry %l, which nothing reads then, is dropped on one side only. The same carry without the update fails
// cause: alike, so the fold is not the fault; it hides the carry from whoever looks for unread ones before it. Compare
// cause: the crash of a loop one of whose carries takes over another one (ScfWhileOpConversion).
// fault: compile-error "failed to legalize unresolved source materialization"
// input: 1x4xf32=1
// input: f32=9
// expected: 1x4xf32=10
// expected: f32=10
func.func @main(%x: tensor<1x4xf32>, %n: tensor<f32>) -> (tensor<1x4xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%l = %x, %t = %zero) : tensor<1x4xf32>, tensor<f32>
    cond {
      %p = stablehlo.compare LT, %t, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %b = stablehlo.add %t, %two : tensor<f32>
      %next = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
      %u = stablehlo.dynamic_update_slice %l, %next, %i, %i : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      stablehlo.return %u, %b : tensor<1x4xf32>, tensor<f32>
    }
  return %r#0, %r#1 : tensor<1x4xf32>, tensor<f32>
}
