// RUN: hloforge opt %s --pass=unroll-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while([[I:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[H:%[a-zA-Z0-9_]+]] = %arg0)
// CHECK: cond {
// CHECK: stablehlo.compare LT, [[I]]
// CHECK: } do {
// CHECK: [[FIRST:%.+]] = stablehlo.dot_general [[H]], %arg1
// CHECK: [[SECOND:%.+]] = stablehlo.dot_general [[FIRST]], %arg1
// CHECK-COUNT-5: stablehlo.dot_general
// CHECK: [[EIGHTH:%.+]] = stablehlo.dot_general
// CHECK-NOT: stablehlo.dot_general
// CHECK: [[STEP:%.+]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK: [[J:%.+]] = stablehlo.add [[I]], [[STEP]]
// CHECK: stablehlo.return [[J]], [[EIGHTH]]
func.func @main(%x: tensor<8x256xf32>, %w: tensor<256x256xf32>) -> tensor<8x256xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<64> : tensor<i32>
  %last:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<8x256xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %next = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
      : (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32>
    stablehlo.return %j, %next : tensor<i32>, tensor<8x256xf32>
  }
  return %last#1 : tensor<8x256xf32>
}
