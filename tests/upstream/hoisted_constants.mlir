// The compiler crashes on loops in each other whose first value is computed from constants.
// cause: The first value of %s is hoisted into a global, so that its size (4 bytes) is not folded while the loops are
// cause: converted: both loops carry it as an index. The inner scf.while has then three operands (an array, an index,
// cause: an array), but two results. RefineUsage (ResourceUsage.cpp, scf.yield) seems to ask for the loop's value with
// cause: the number of the yielded one: it finds an index where it expects a resource, and reads through a null pointer
// cause: (ResourceType::getLifetime). It compiles with --iree-opt-const-expr-hoisting=false.
// fault: crash
func.func @main(%n: tensor<i32>) -> (tensor<2xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<f32>
  %y0 = stablehlo.constant dense<0.0> : tensor<2xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<1xf32>
  %ones = stablehlo.constant dense<1.0> : tensor<1xf32>
  %l = stablehlo.concatenate %zeros, %ones, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  %head = stablehlo.slice %l [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %first = stablehlo.reshape %head : (tensor<1xf32>) -> tensor<f32>
  %r:4 = stablehlo.while(%i = %zero, %a = %y0, %s = %first, %h = %three)
      : tensor<i32>, tensor<2xf32>, tensor<f32>, tensor<f32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %w:3 = stablehlo.while(%y = %a, %t = %s, %g = %h) : tensor<2xf32>, tensor<f32>, tensor<f32>
        cond {
          %q = stablehlo.compare LT, %t, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %q : tensor<i1>
        } do {
          %x = stablehlo.broadcast_in_dim %g, dims = [] : (tensor<f32>) -> tensor<2xf32>
          %v = stablehlo.add %t, %g : tensor<f32>
          stablehlo.return %x, %v, %z : tensor<2xf32>, tensor<f32>, tensor<f32>
        }
      stablehlo.return %j, %w#0, %w#1, %w#2 : tensor<i32>, tensor<2xf32>, tensor<f32>, tensor<f32>
    }
  return %r#1, %r#2 : tensor<2xf32>, tensor<f32>
}
