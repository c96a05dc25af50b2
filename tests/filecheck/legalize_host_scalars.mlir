// RUN: hloforge opt %s --pass=legalize-host-scalars | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while([[I:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[V:%[a-zA-Z0-9_]+]] = %arg1)
// CHECK: } do {
// CHECK: [[J:%.+]] = stablehlo.optimization_barrier [[I]] : tensor<i32>
// CHECK: [[F:%.+]] = stablehlo.convert [[J]] : (tensor<i32>) -> tensor<f64>
// CHECK: [[R:%.+]] = stablehlo.broadcast_in_dim [[F]], dims = [] : (tensor<f64>) -> tensor<9xf64>
func.func @main(%n: tensor<i32>, %x: tensor<9xf64>) -> tensor<9xf64> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<9xf64>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f64>
    %r = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<9xf64>
    %w = stablehlo.add %v, %r : tensor<9xf64>
    stablehlo.return %next, %w : tensor<i32>, tensor<9xf64>
  }
  return %last#1 : tensor<9xf64>
}
