// RUN: hloforge opt %s --pass=unroll-short-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.while
// CHECK: [[FIRST:%.+]] = stablehlo.constant dense<13> : tensor<ui32>
// CHECK: [[BY:%.+]] = stablehlo.broadcast_in_dim [[FIRST]]
// CHECK: [[ONCE:%.+]] = stablehlo.shift_left %arg0, [[BY]]
// CHECK: [[SECOND:%.+]] = stablehlo.constant dense<17> : tensor<ui32>
// CHECK: [[FAR:%.+]] = stablehlo.broadcast_in_dim [[SECOND]]
// CHECK: [[TWICE:%.+]] = stablehlo.shift_left [[ONCE]], [[FAR]]
// CHECK: [[AGAIN:%.+]] = stablehlo.constant dense<13> : tensor<ui32>
// CHECK: [[MORE:%.+]] = stablehlo.broadcast_in_dim [[AGAIN]]
// CHECK: [[THRICE:%.+]] = stablehlo.shift_left [[TWICE]], [[MORE]]
// CHECK: return [[THRICE]]
func.func @main(%x: tensor<64x128xui32>) -> tensor<64x128xui32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %a = stablehlo.constant dense<[13, 15]> : tensor<2xui32>
  %b = stablehlo.constant dense<[17, 29]> : tensor<2xui32>
  %last:4 = stablehlo.while(%i = %zero, %h = %x, %r = %a, %s = %b)
    : tensor<i32>, tensor<64x128xui32>, tensor<2xui32>, tensor<2xui32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %first = stablehlo.slice %r [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %scalar = stablehlo.reshape %first : (tensor<1xui32>) -> tensor<ui32>
    %by = stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<ui32>) -> tensor<64x128xui32>
    %next = stablehlo.shift_left %h, %by : tensor<64x128xui32>
    stablehlo.return %j, %next, %s, %r : tensor<i32>, tensor<64x128xui32>, tensor<2xui32>, tensor<2xui32>
  }
  return %last#1 : tensor<64x128xui32>
}
