// RUN: hloforge opt %s --pass=merge-induction-variables | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while([[I:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[J:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[X:%[a-zA-Z0-9_]+]] = %arg0)
// CHECK: cond {
// CHECK: [[P:%.+]] = stablehlo.compare LT, [[I]], %arg1
// CHECK: stablehlo.return [[P]]
// CHECK: } do {
// CHECK: [[K:%.+]] = stablehlo.add [[I]], [[ONE:%.+]] :
// CHECK: [[L:%.+]] = stablehlo.add [[I]], [[ONE]] :
// CHECK: stablehlo.return [[K]], [[L]]
func.func @main(%first: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last:3 = stablehlo.while(%i = %zero, %j = %zero, %x = %first) : tensor<i32>, tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %q = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %go = stablehlo.and %p, %q : tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %k = stablehlo.add %i, %one : tensor<i32>
    %l = stablehlo.add %j, %one : tensor<i32>
    %y = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %k, %l, %y : tensor<i32>, tensor<i32>, tensor<4xf32>
  }
  return %last#2 : tensor<4xf32>
}
