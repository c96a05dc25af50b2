// RUN: hloforge opt %s --pass=legalize-sums-after-loops | filecheck %s

// The factors of all turns are kept, and multiplied once; so is what a reduction adds up of the same.
// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]]:5 = stablehlo.while
// CHECK: stablehlo.dynamic_update_slice {{.*}} : (tensor<50x4x64xf32>, tensor<1x4x64xf32>
// CHECK: stablehlo.dynamic_update_slice {{.*}} : (tensor<50x4x32xf32>, tensor<1x4x32xf32>
// CHECK: stablehlo.return
// CHECK: [[P:%.+]] = stablehlo.dot_general [[R]]#3, [[R]]#4, contracting_dims = [0, 1] x [0, 1] : (tensor<50x4x64xf32>, tensor<50x4x32xf32>) -> tensor<64x32xf32>
// CHECK: [[T:%.+]] = stablehlo.transpose [[P]], dims = [1, 0]
// CHECK: stablehlo.add %arg0, [[T]]
// CHECK: stablehlo.reduce([[R]]#3 {{.*}} dimensions = [0, 1]
func.func @main(%start: tensor<32x64xf32>, %bias: tensor<64xf32>, %ys: tensor<50x4x64xf32>, %xs: tensor<50x4x32xf32>)
    -> (tensor<32x64xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<50> : tensor<i32>
  %nought = stablehlo.constant dense<0.0> : tensor<f32>
  %r:3 = stablehlo.while(%i = %zero, %sum = %start, %b = %bias) : tensor<i32>, tensor<32x64xf32>, tensor<64xf32>
  cond {
    %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %y1 = stablehlo.dynamic_slice %ys, %i, %zero, %zero, sizes = [1, 4, 64] : (tensor<50x4x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x64xf32>
    %y = stablehlo.reshape %y1 : (tensor<1x4x64xf32>) -> tensor<4x64xf32>
    %x1 = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 32] : (tensor<50x4x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x32xf32>
    %x = stablehlo.reshape %x1 : (tensor<1x4x32xf32>) -> tensor<4x32xf32>
    %p = stablehlo.dot_general %y, %x, contracting_dims = [0] x [0] : (tensor<4x64xf32>, tensor<4x32xf32>) -> tensor<64x32xf32>
    %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    %next = stablehlo.add %sum, %t : tensor<32x64xf32>
    %s = stablehlo.reduce(%y init: %nought) applies stablehlo.add across dimensions = [0] : (tensor<4x64xf32>, tensor<f32>) -> tensor<64xf32>
    %biased = stablehlo.add %b, %s : tensor<64xf32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %next, %biased : tensor<i32>, tensor<32x64xf32>, tensor<64xf32>
  }
  return %r#1, %r#2 : tensor<32x64xf32>, tensor<64xf32>
}

// A turn that reads the sum so far keeps it.
// CHECK-LABEL: func.func @read
// CHECK: :2 = stablehlo.while
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [0] x [0]
// CHECK-NOT: contracting_dims = [0, 1]
func.func @read(%start: tensor<32x64xf32>, %x: tensor<4x32xf32>) -> tensor<32x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<50> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<32x64xf32>
  cond {
    %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %y = stablehlo.dot_general %x, %sum, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x64xf32>) -> tensor<4x64xf32>
    %z = stablehlo.slice %y [0:4, 0:32] : (tensor<4x64xf32>) -> tensor<4x32xf32>
    %p = stablehlo.dot_general %z, %y, contracting_dims = [0] x [0] : (tensor<4x32xf32>, tensor<4x64xf32>) -> tensor<32x64xf32>
    %next = stablehlo.add %sum, %p : tensor<32x64xf32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %next : tensor<i32>, tensor<32x64xf32>
  }
  return %r#1 : tensor<32x64xf32>
}
