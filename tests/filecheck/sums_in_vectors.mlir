// RUN: hloforge opt %s --pass=sums-in-vectors | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.multiply %arg0, %arg1
// CHECK: [[Z:%.+]] = stablehlo.constant dense<0.0{{.*}} : tensor<64x128xf32>
// CHECK: [[Q:%.+]] = stablehlo.add [[P]], [[Z]]
// CHECK: [[S:%.+]] = stablehlo.reduce([[Q]] init: {{%.+}}) applies stablehlo.add across dimensions = [1]
// CHECK: return [[S]]
func.func @main(%x: tensor<64x128xf32>, %y: tensor<64x128xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.multiply %x, %y : tensor<64x128xf32>
  %s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
