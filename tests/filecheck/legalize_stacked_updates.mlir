// RUN: hloforge opt %s --pass=legalize-stacked-updates | filecheck %s

// A cache that goes into a scan and out of it, and is read by what follows.
// CHECK-LABEL: func.func @main
// CHECK: do {
// CHECK: %[[PART:.+]] = stablehlo.reshape %{{.+}} : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
// CHECK: %[[WHOLE:.+]] = stablehlo.dynamic_update_slice %[[STACK:.+]], %[[PART]], %[[I:.+]], %[[ZERO:.+]], %[[ZERO]] :
// CHECK: %[[ROW:.+]] = stablehlo.reshape %{{.+}} : (tensor<1x8xf32>) -> tensor<1x1x8xf32>
// CHECK: %[[BOTH:.+]] = stablehlo.dynamic_update_slice %[[WHOLE]], %[[ROW]], %[[I]], %[[T:.+]], %[[ZERO]] :
// CHECK: %[[READ:.+]] = stablehlo.dynamic_slice %[[BOTH]], %[[I]], %[[ZERO]], %[[ZERO]], sizes = [1, 4, 8]
// CHECK: stablehlo.reshape %[[READ]] : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
// CHECK: stablehlo.add
// CHECK: stablehlo.return %{{.+}}, %{{.+}}, %[[BOTH]]
func.func @main(%xs: tensor<3x4x8xf32>, %h: tensor<8xf32>, %t: tensor<i32>) -> (tensor<8xf32>, tensor<3x4x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %nought = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %nought, dims = [] : (tensor<f32>) -> tensor<3x4x8xf32>
  %r:3 = stablehlo.while(%i = %zero, %state = %h, %stack = %empty) : tensor<i32>, tensor<8xf32>, tensor<3x4x8xf32>
  cond {
    %more = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %layer = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 8] : (tensor<3x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %x = stablehlo.reshape %layer : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %row = stablehlo.reshape %state : (tensor<8xf32>) -> tensor<1x8xf32>
    %y = stablehlo.dynamic_update_slice %x, %row, %t, %zero : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %sum = stablehlo.reduce(%y init: %nought) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
    %next = stablehlo.add %sum, %state : tensor<8xf32>
    %part = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %stacked = stablehlo.dynamic_update_slice %stack, %part, %i, %zero, %zero : (tensor<3x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x8xf32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %next, %stacked : tensor<i32>, tensor<8xf32>, tensor<3x4x8xf32>
  }
  return %r#1, %r#2 : tensor<8xf32>, tensor<3x4x8xf32>
}

// A part of the stack itself.
// CHECK-LABEL: func.func @own
// CHECK: %[[CHANGED:.+]] = stablehlo.dynamic_update_slice %[[STACK:.+]], %{{.+}}, %[[I:.+]], %[[T:.+]], %[[ZERO:.+]] : (tensor<3x4x8xf32>, tensor<1x1x8xf32>
// CHECK-NOT: stablehlo.dynamic_update_slice
// CHECK: stablehlo.return %{{.+}}, %[[CHANGED]]
func.func @own(%xs: tensor<3x4x8xf32>, %h: tensor<1x8xf32>, %t: tensor<i32>) -> tensor<3x4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %stack = %xs) : tensor<i32>, tensor<3x4x8xf32>
  cond {
    %more = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %layer = stablehlo.dynamic_slice %stack, %i, %zero, %zero, sizes = [1, 4, 8] : (tensor<3x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %x = stablehlo.reshape %layer : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %y = stablehlo.dynamic_update_slice %x, %h, %t, %zero : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %part = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %stacked = stablehlo.dynamic_update_slice %stack, %part, %i, %zero, %zero : (tensor<3x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x8xf32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %stacked : tensor<i32>, tensor<3x4x8xf32>
  }
  return %r#1 : tensor<3x4x8xf32>
}

// The stack is read as well, as it was before.
// CHECK-LABEL: func.func @read
// CHECK: stablehlo.dynamic_update_slice %{{.+}} : (tensor<4x8xf32>, tensor<1x8xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.+}} : (tensor<3x4x8xf32>, tensor<1x4x8xf32>
func.func @read(%xs: tensor<3x4x8xf32>, %x: tensor<4x8xf32>, %h: tensor<1x8xf32>, %t: tensor<i32>) -> (tensor<3x4x8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %nought = stablehlo.constant dense<0.0> : tensor<f32>
  %r:3 = stablehlo.while(%i = %zero, %stack = %xs, %total = %nought) : tensor<i32>, tensor<3x4x8xf32>, tensor<f32>
  cond {
    %more = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %y = stablehlo.dynamic_update_slice %x, %h, %t, %zero : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %part = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %stacked = stablehlo.dynamic_update_slice %stack, %part, %i, %zero, %zero : (tensor<3x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x8xf32>
    %sum = stablehlo.reduce(%stack init: %total) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x4x8xf32>, tensor<f32>) -> tensor<f32>
    %count = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %count, %stacked, %sum : tensor<i32>, tensor<3x4x8xf32>, tensor<f32>
  }
  return %r#1, %r#2 : tensor<3x4x8xf32>, tensor<f32>
}
