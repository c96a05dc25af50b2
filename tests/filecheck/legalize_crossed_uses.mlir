// RUN: hloforge opt %s --pass=legalize-crossed-uses | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]] = stablehlo.reduce(%arg0
// CHECK: [[T:%.+]] = stablehlo.optimization_barrier [[S]]
// CHECK: [[A:%.+]] = stablehlo.broadcast_in_dim [[T]], dims = [0] : (tensor<20xf32>) -> tensor<20x20xf32>
// CHECK: [[B:%.+]] = stablehlo.broadcast_in_dim [[T]], dims = [1] : (tensor<20xf32>) -> tensor<20x20xf32>
// CHECK: [[R:%.+]] = stablehlo.add [[A]], [[B]]
// CHECK: return [[R]]
func.func @main(%x: tensor<20x7xf32>) -> tensor<20x20xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<20x7xf32>, tensor<f32>) -> tensor<20xf32>
  %a = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<20xf32>) -> tensor<20x20xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<20xf32>) -> tensor<20x20xf32>
  %r = stablehlo.add %a, %b : tensor<20x20xf32>
  return %r : tensor<20x20xf32>
}
