// RUN: hloforge opt %s --pass=hoist-products | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
// CHECK: stablehlo.while
// CHECK: } do {
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.add {{%.+}}, [[P]]
// CHECK: stablehlo.return
func.func @main(%kernel: tensor<8x8xf32>, %image: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<9> : tensor<i32>
  %last:3 = stablehlo.while(%i = %zero, %v = %x, %w = %kernel) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %w, %image, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %u = stablehlo.add %v, %p : tensor<8x8xf32>
    stablehlo.return %next, %u, %w : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %last#1 : tensor<8x8xf32>
}
