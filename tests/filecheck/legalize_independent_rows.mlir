// RUN: hloforge opt %s --pass=legalize-independent-rows | filecheck %s

// A recurrent layer: rows of the input, which no turn changes, are read where they are.
// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.+]] = stablehlo.slice %[[H:.+]] [0:16, 0:128]
// CHECK: stablehlo.while
// CHECK: do {
// CHECK: %[[READ:.+]] = stablehlo.slice %{{.+}} [0:5, 0:16, 0:128]
// CHECK: stablehlo.dynamic_slice %[[READ]], {{.+}} sizes = [1, 16, 128]
// CHECK: stablehlo.dot_general {{.+}} -> tensor<16x128xf32>
// CHECK: stablehlo.dynamic_update_slice {{.+}} -> tensor<5x16x128xf32>
// CHECK: stablehlo.slice %[[H]] [16:33, 0:128]
// CHECK: stablehlo.while
// CHECK: stablehlo.slice %{{.+}} [0:5, 16:33, 0:128]
// CHECK: stablehlo.dot_general {{.+}} -> tensor<17x128xf32>
// CHECK: stablehlo.concatenate {{.+}}, dim = 0 : (tensor<16x128xf32>, tensor<17x128xf32>) -> tensor<33x128xf32>
// CHECK: stablehlo.concatenate {{.+}}, dim = 1 : (tensor<5x16x128xf32>, tensor<5x17x128xf32>) -> tensor<5x33x128xf32>
func.func @main(%xs: tensor<5x33x128xf32>, %w: tensor<128x128xf32>, %h: tensor<33x128xf32>) -> (tensor<33x128xf32>, tensor<5x33x128xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %nought = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %nought, dims = [] : (tensor<f32>) -> tensor<5x33x128xf32>
  %r:3 = stablehlo.while(%i = %zero, %state = %h, %stack = %empty) : tensor<i32>, tensor<33x128xf32>, tensor<5x33x128xf32>
  cond {
    %more = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %part = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 33, 128] : (tensor<5x33x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x33x128xf32>
    %x = stablehlo.reshape %part : (tensor<1x33x128xf32>) -> tensor<33x128xf32>
    %y = stablehlo.dot_general %state, %w, contracting_dims = [1] x [0] : (tensor<33x128xf32>, tensor<128x128xf32>) -> tensor<33x128xf32>
    %sum = stablehlo.add %x, %y : tensor<33x128xf32>
    %new = stablehlo.tanh %sum : tensor<33x128xf32>
    %out = stablehlo.broadcast_in_dim %new, dims = [1, 2] : (tensor<33x128xf32>) -> tensor<1x33x128xf32>
    %stacked = stablehlo.dynamic_update_slice %stack, %out, %i, %zero, %zero : (tensor<5x33x128xf32>, tensor<1x33x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x33x128xf32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %new, %stacked : tensor<i32>, tensor<33x128xf32>, tensor<5x33x128xf32>
  }
  return %r#1, %r#2 : tensor<33x128xf32>, tensor<5x33x128xf32>
}

// A sum over the rows mixes them.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT: stablehlo.concatenate
func.func @mixed(%w: tensor<128x128xf32>, %h: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %nought = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%i = %zero, %state = %h) : tensor<i32>, tensor<32x128xf32>
  cond {
    %more = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %y = stablehlo.dot_general %state, %w, contracting_dims = [1] x [0] : (tensor<32x128xf32>, tensor<128x128xf32>) -> tensor<32x128xf32>
    %mean = stablehlo.reduce(%y init: %nought) applies stablehlo.add across dimensions = [0] : (tensor<32x128xf32>, tensor<f32>) -> tensor<128xf32>
    %wide = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<128xf32>) -> tensor<32x128xf32>
    %new = stablehlo.subtract %y, %wide : tensor<32x128xf32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %new : tensor<i32>, tensor<32x128xf32>
  }
  return %r#1 : tensor<32x128xf32>
}

// In another loop's body one part would run after the other.
// CHECK-LABEL: func.func @nested
// CHECK-NOT: stablehlo.concatenate
func.func @nested(%w: tensor<128x128xf32>, %h: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %outer = %h) : tensor<i32>, tensor<32x128xf32>
  cond {
    %more = stablehlo.compare LT, %i, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %s:2 = stablehlo.while(%j = %zero, %state = %outer) : tensor<i32>, tensor<32x128xf32>
    cond {
      %less = stablehlo.compare LT, %j, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %y = stablehlo.dot_general %state, %w, contracting_dims = [1] x [0] : (tensor<32x128xf32>, tensor<128x128xf32>) -> tensor<32x128xf32>
      %new = stablehlo.tanh %y : tensor<32x128xf32>
      %next = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<32x128xf32>
    }
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %s#1 : tensor<i32>, tensor<32x128xf32>
  }
  return %r#1 : tensor<32x128xf32>
}
