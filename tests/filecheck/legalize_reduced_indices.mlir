// RUN: hloforge opt %s --pass=legalize-reduced-indices | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[V:%.+]] = stablehlo.iota dim = 0 : tensor<64xi32>
// CHECK-NEXT: [[B:%.+]] = stablehlo.optimization_barrier [[V]] : tensor<64xi32>
// CHECK-NEXT: [[I:%.+]] = stablehlo.broadcast_in_dim [[B]], dims = [1] : (tensor<64xi32>) -> tensor<8x64xi32>
// CHECK: stablehlo.compare EQ, [[I]], %arg0
func.func @main(%y: tensor<8x64xi32>, %x: tensor<8x64xf32>) -> (tensor<f32>, tensor<3xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.iota dim = 1 : tensor<8x64xi32>
  %m = stablehlo.compare EQ, %i, %y : (tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64xi1>
  %z = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x64xf32>
  %c = stablehlo.select %m, %x, %z : tensor<8x64xi1>, tensor<8x64xf32>
  %s = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x64xf32>, tensor<f32>) -> tensor<f32>
  // What is returned is in memory anyway.
  // CHECK: [[R:%.+]] = stablehlo.iota dim = 0 : tensor<3xi32>
  // CHECK: return {{%.+}}, [[R]]
  %r = stablehlo.iota dim = 0 : tensor<3xi32>
  return %s, %r : tensor<f32>, tensor<3xi32>
}
