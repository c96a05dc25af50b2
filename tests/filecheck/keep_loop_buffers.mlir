// RUN: hloforge opt %s --pass=keep-loop-buffers | filecheck %s

// CHECK: "util.func"() ({
// CHECK: [[ZERO:%.+]] = arith.constant 0
// CHECK: "util.optimization_barrier"([[ZERO]])
// CHECK: sym_name = "hloforge.keep_buffers", sym_visibility = "private"
// CHECK: func.func @main
// CHECK-NEXT: "util.call"() {callee = @hloforge.keep_buffers}
// CHECK-NEXT: [[R:%[a-zA-Z0-9_]+]]:2 = stablehlo.while({{%[a-zA-Z0-9_]+}} = %arg0
// CHECK: } do {
// CHECK-NEXT: "util.call"() {callee = @hloforge.keep_buffers}
// The condition of the next loop is computed from an array.
// CHECK: "util.call"() {callee = @hloforge.keep_buffers}
// CHECK-NEXT: [[S:%[a-zA-Z0-9_]+]] = stablehlo.while({{%[a-zA-Z0-9_]+}} = [[R]]#0)
// CHECK: } do {
// CHECK-NEXT: stablehlo.add
// CHECK: return [[S]]
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %r:2 = stablehlo.while(%a = %x, %i = %n) : tensor<4xf32>, tensor<i32>
  cond {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %b = stablehlo.add %a, %a : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.subtract %i, %one : tensor<i32>
    stablehlo.return %b, %j : tensor<4xf32>, tensor<i32>
  }
  %t = stablehlo.while(%a = %r#0) : tensor<4xf32>
  cond {
    %ten = stablehlo.constant dense<10.0> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %p = stablehlo.compare LT, %s, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %d = stablehlo.add %a, %a : tensor<4xf32>
    stablehlo.return %d : tensor<4xf32>
  }
  return %t : tensor<4xf32>
}
