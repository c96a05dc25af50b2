// A loop's counter as f64 fills an array on the host, which knows no f64.
// cause: A scalar that follows from the counter of a loop is computed on the host, by IREE's VM, which has neither
// cause: f16 nor, without an extension, f64. The conversion fails instead of staying on the device.
// fault: compile-error "failed to legalize operation 'arith.sitofp'"
// input: i32=3
// input: 3xf64=0
// expected: 3xf64=3
func.func @main(%n: tensor<i32>, %x: tensor<3xf64>) -> tensor<3xf64> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %x) : tensor<i32>, tensor<3xf64>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f64>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %next = stablehlo.add %sum, %b : tensor<3xf64>
    stablehlo.return %j, %next : tensor<i32>, tensor<3xf64>
  }
  return %r#1 : tensor<3xf64>
}
