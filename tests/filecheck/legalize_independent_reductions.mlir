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
