// RUN: hloforge opt %s --pass=legalize-long-sums | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[B:%.+]] = stablehlo.reshape %arg0 : (tensor<400000x64xf32>) -> tensor<625x640x64xf32>
// CHECK: [[T:%.+]] = stablehlo.reduce([[B]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
// CHECK: stablehlo.reduce([[T]] init: %{{.+}}) applies stablehlo.add across dimensions = [0]
func.func @main(%x: tensor<400000x64xf32>, %y: tensor<4000x64xf32>, %z: tensor<100000xi32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<400000x64xf32>, tensor<f32>) -> tensor<64xf32>
  // CHECK: stablehlo.reduce(%arg1 init: %{{.+}}) applies stablehlo.add across dimensions = [0] : (tensor<4000x64xf32>
  %t = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4000x64xf32>, tensor<f32>) -> tensor<64xf32>
  // CHECK: stablehlo.reduce(%arg2 init: %{{.+}}) applies stablehlo.add across dimensions = [0] : (tensor<100000xi32>
  %u = stablehlo.reduce(%z init: %none) applies stablehlo.add across dimensions = [0] : (tensor<100000xi32>, tensor<i32>) -> tensor<i32>
  return %s, %t, %u : tensor<64xf32>, tensor<64xf32>, tensor<i32>
}
