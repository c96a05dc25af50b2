// RUN: hloforge opt %s --pass=legalize-independent-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]] = stablehlo.reduce(%arg0 init: {{%.+}}) applies stablehlo.add across dimensions = [0]
// CHECK: [[P:%.+]] = stablehlo.reduce([[IOTA:%.+]] init: {{%.+}}) applies stablehlo.multiply across dimensions = [0]
// CHECK: return [[S]], [[P]]
func.func @main(%x: tensor<8xf32>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %iota = stablehlo.iota dim = 0 : tensor<8xi32>
  %r:2 = stablehlo.reduce(%x init: %zero), (%iota init: %one) across dimensions = [0]
    : (tensor<8xf32>, tensor<8xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %s = stablehlo.add %a, %b : tensor<f32>
      %p = stablehlo.multiply %i, %j : tensor<i32>
      stablehlo.return %s, %p : tensor<f32>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<f32>, tensor<i32>
}

// What branches read from around them is read anew.
// CHECK-LABEL: func.func @branches
// CHECK: reducer(%[[A:.+]]: tensor<i8>, %[[B:.+]]: tensor<i8>)
// CHECK: stablehlo.compare EQ, %[[A]], %[[B]]
// CHECK: stablehlo.subtract %[[A]], %[[B]]
// CHECK: stablehlo.xor %[[A]], %[[B]]
// CHECK: applies stablehlo.add
func.func @branches(%x: tensor<8xi8>, %y: tensor<8xi16>) -> (tensor<i8>, tensor<i16>) {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %none = stablehlo.constant dense<0> : tensor<i16>
  %r:2 = stablehlo.reduce(%x init: %zero), (%y init: %none) across dimensions = [0]
    : (tensor<8xi8>, tensor<8xi16>, tensor<i8>, tensor<i16>) -> (tensor<i8>, tensor<i16>)
    reducer(%a: tensor<i8>, %b: tensor<i8>) (%i: tensor<i16>, %j: tensor<i16>) {
      %same = stablehlo.compare EQ, %a, %b : (tensor<i8>, tensor<i8>) -> tensor<i1>
      %s = "stablehlo.if"(%same) ({
        %d = stablehlo.subtract %a, %b : tensor<i8>
        stablehlo.return %d : tensor<i8>
      }, {
        %d = stablehlo.xor %a, %b : tensor<i8>
        stablehlo.return %d : tensor<i8>
      }) : (tensor<i1>) -> tensor<i8>
      %p = stablehlo.add %i, %j : tensor<i16>
      stablehlo.return %s, %p : tensor<i8>, tensor<i16>
    }
  return %r#0, %r#1 : tensor<i8>, tensor<i16>
}
