// RUN: hloforge opt %s --pass=legalize-loop-carries | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]]:2 = stablehlo.while([[I:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[Y:%[a-zA-Z0-9_]+]] = %arg0) : tensor<i32>, tensor<2xf32>
// CHECK: } do {
// CHECK: [[N:%.+]] = stablehlo.add [[I]]
// CHECK: [[P:%.+]] = stablehlo.multiply [[Y]], %arg1
// CHECK: stablehlo.return [[N]], [[P]]
// CHECK: return [[R]]#1
func.func @main(%x: tensor<2xf32>, %scale: tensor<2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %k = %scale, %y = %x, %dead = %x)
      : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  cond {
    %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.multiply %y, %k : tensor<2xf32>
    stablehlo.return %next, %k, %p, %y : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
  return %r#2 : tensor<2xf32>
}
