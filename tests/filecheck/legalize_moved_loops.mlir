// RUN: hloforge opt %s --pass=legalize-moved-loops | filecheck %s

// What a branch reads may be made after what lies beside its result.
// CHECK-LABEL: func.func @main
// CHECK: [[D:%.+]] = stablehlo.sine %arg0
// CHECK: [[R:%.+]] = "stablehlo.if"
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[D]] : tensor<4xf32>
// CHECK-NEXT: stablehlo.concatenate [[R]], [[B]], dim = 0
// CHECK-NEXT: stablehlo.concatenate [[D]], [[R]], dim = 0
// CHECK: [[S:%.+]] = stablehlo.dynamic_slice [[D]]
// CHECK-NEXT: [[P:%.+]] = stablehlo.optimization_barrier [[S]] : tensor<2xf32>
// CHECK-NEXT: stablehlo.dynamic_update_slice [[R]], [[P]]
// CHECK: [[W:%.+]] = stablehlo.reshape
// CHECK: [[Q:%.+]] = stablehlo.optimization_barrier [[D]] : tensor<4xf32>
// CHECK-NEXT: stablehlo.pad [[Q]], [[W]]

// What is computed of the conditional's result comes after it, and so does what lies beside it.
// CHECK: [[E:%.+]] = stablehlo.cosine [[R]]
// CHECK-NEXT: stablehlo.concatenate [[R]], [[E]], dim = 0
// CHECK: [[A:%.+]] = "stablehlo.if"
// CHECK-NOT: optimization_barrier
// CHECK: stablehlo.concatenate [[A]], [[D]], dim = 0
func.func @main(%x: tensor<4xf32>, %p: tensor<i1>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %d = stablehlo.sine %x : tensor<4xf32>
  %v = stablehlo.cosine %x : tensor<4xf32>
  %r = "stablehlo.if"(%p) ({
    stablehlo.return %v : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %0 = stablehlo.concatenate %r, %d, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %1 = stablehlo.concatenate %d, %r, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %s = stablehlo.dynamic_slice %d, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  %2 = stablehlo.dynamic_update_slice %r, %s, %i : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  %n = stablehlo.slice %r [1:2] : (tensor<4xf32>) -> tensor<1xf32>
  %w = stablehlo.reshape %n : (tensor<1xf32>) -> tensor<f32>
  %3 = stablehlo.pad %d, %w, low = [4], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %e = stablehlo.cosine %r : tensor<4xf32>
  %4 = stablehlo.concatenate %r, %e, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  // Arguments and constants come before every dispatch.
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %a = "stablehlo.if"(%p) ({
    stablehlo.return %c : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %5 = stablehlo.concatenate %a, %d, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A loop inside of a loop reads what the outer one carries.
// CHECK-LABEL: func.func private @carried
// CHECK: stablehlo.while
// CHECK: [[T:%.+]] = stablehlo.sine
// CHECK: [[L:%.+]] = "stablehlo.if"
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[T]] : tensor<4xf32>
// CHECK-NEXT: stablehlo.concatenate [[L]], [[B]], dim = 0
func.func private @carried(%x: tensor<8xf32>, %y: tensor<4xf32>, %p: tensor<i1>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%b = %p, %c = %x) : tensor<i1>, tensor<8xf32>
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %t = stablehlo.sine %y : tensor<4xf32>
    %l = "stablehlo.if"(%b) ({
      %s = stablehlo.slice %c [0:4] : (tensor<8xf32>) -> tensor<4xf32>
      stablehlo.return %s : tensor<4xf32>
    }, {
      stablehlo.return %y : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %z = stablehlo.concatenate %l, %t, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %n = stablehlo.not %b : tensor<i1>
    stablehlo.return %n, %z : tensor<i1>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
