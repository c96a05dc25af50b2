// RUN: hloforge opt %s --pass=legalize-long-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = stablehlo.reshape %arg0 : (tensor<1000000xf32>) -> tensor<1000x1000xf32>
// CHECK: [[P:%.+]] = stablehlo.reduce([[R]] init: [[ZERO:%.+]]) applies stablehlo.add across dimensions = [1] :
// CHECK: [[S:%.+]] = stablehlo.reduce([[P]] init: {{%.+}}) applies stablehlo.add across dimensions = [0] :
// CHECK: return [[S]]
func.func @main(%x: tensor<1000000xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<1000000xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}
