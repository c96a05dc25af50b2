// RUN: hloforge opt %s --pass=legalize-single-turns | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.while
// CHECK: %[[R:.+]] = stablehlo.multiply %arg0, %arg0 : tensor<4xf32>
// CHECK-NOT: stablehlo.while
// CHECK: return %[[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.multiply %a, %a : tensor<4xf32>
      stablehlo.return %n, %b : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32>
}

// It never runs.
// CHECK-LABEL: func.func @never
// CHECK-NOT: stablehlo.while
// CHECK: return %arg0
func.func @never(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %b = stablehlo.multiply %a, %a : tensor<4xf32>
      stablehlo.return %i, %b : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32>
}

// Two turns, and as many as an argument says.
// CHECK-LABEL: func.func @several
// CHECK-COUNT-2: stablehlo.while
func.func @several(%x: tensor<4xf32>, %most: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.multiply %a, %a : tensor<4xf32>
      stablehlo.return %n, %b : tensor<i32>, tensor<4xf32>
    }
  %s:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.multiply %a, %a : tensor<4xf32>
      stablehlo.return %n, %b : tensor<i32>, tensor<4xf32>
    }
  return %r#1, %s#1 : tensor<4xf32>, tensor<4xf32>
}

// What a condition does besides is done twice.
// CHECK-LABEL: func.func @told
// CHECK: stablehlo.while
func.func @told(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      stablehlo.custom_call @tell(%i) {has_side_effect = true} : (tensor<i32>) -> ()
      %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.multiply %a, %a : tensor<4xf32>
      stablehlo.return %n, %b : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32>
}
