// RUN: hloforge opt %s --pass=legalize-tall-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[B:%.+]] = stablehlo.reshape %arg0 : (tensor<4000x2000xf32>) -> tensor<8x500x2000xf32>
// CHECK: [[T:%.+]] = stablehlo.reduce([[B]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
// CHECK: stablehlo.reduce([[T]] init: %{{.+}}) applies stablehlo.add across dimensions = [0]
func.func @main(%x: tensor<4000x2000xf32>, %y: tensor<4001x300xf32>, %z: tensor<100x10000xf32>, %w: tensor<1x56x56x144xf32>) -> (tensor<2000xf32>, tensor<300xf32>, tensor<10000xf32>, tensor<1x144xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4000x2000xf32>, tensor<f32>) -> tensor<2000xf32>
  // CHECK: stablehlo.slice %arg1 [0:4000, 0:300]
  // CHECK: stablehlo.slice %arg1 [4000:4001, 0:300]
  // CHECK: stablehlo.maximum
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<4001x300xf32>, tensor<f32>) -> tensor<300xf32>
  // Columns are long.
  // CHECK: stablehlo.reduce(%arg2 init: %{{.+}}) applies stablehlo.add across dimensions = [0] : (tensor<100x10000xf32>
  %u = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<100x10000xf32>, tensor<f32>) -> tensor<10000xf32>
  // Pixels are rows.
  // CHECK: stablehlo.reshape %arg3 : (tensor<1x56x56x144xf32>) -> tensor<3136x144xf32>
  // CHECK: [[P:%.+]] = stablehlo.reshape %{{.+}} : (tensor<3136x144xf32>) -> tensor<8x392x144xf32>
  // CHECK: [[Q:%.+]] = stablehlo.reduce([[P]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
  // CHECK: [[R:%.+]] = stablehlo.reduce([[Q]] init: %{{.+}}) applies stablehlo.add across dimensions = [0]
  // CHECK: stablehlo.reshape [[R]] : (tensor<144xf32>) -> tensor<1x144xf32>
  %v = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x56x56x144xf32>, tensor<f32>) -> tensor<1x144xf32>
  return %s, %t, %u, %v : tensor<2000xf32>, tensor<300xf32>, tensor<10000xf32>, tensor<1x144xf32>
}
