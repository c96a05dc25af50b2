// RUN: hloforge opt %s --pass=legalize-reduced-dimensions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T:%.+]] = stablehlo.transpose %arg0, dims = [1, 3, 0, 2, 4]
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[T]]
// CHECK: [[R:%.+]] = stablehlo.reshape [[B]] : (tensor<3x3x2x2x2xf32>) -> tensor<3x3x8xf32>
// CHECK: stablehlo.reduce([[R]] init: %{{.+}}) applies stablehlo.add across dimensions = [2]
func.func @main(%x: tensor<2x3x2x3x2xf32>, %a: tensor<f32>) -> tensor<3x3xf32> {
  %s = stablehlo.reduce(%x init: %a) applies stablehlo.add across dimensions = [0, 2, 4]
    : (tensor<2x3x2x3x2xf32>, tensor<f32>) -> tensor<3x3xf32>
  return %s : tensor<3x3xf32>
}

// CHECK-LABEL: func.func @two_groups
// CHECK: stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0, 2, 3]
func.func @two_groups(%x: tensor<2x3x2x3xf32>, %a: tensor<f32>) -> tensor<3xf32> {
  %s = stablehlo.reduce(%x init: %a) applies stablehlo.add across dimensions = [0, 2, 3]
    : (tensor<2x3x2x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: [[T:%.+]] = stablehlo.transpose %arg0, dims = [1, 3, 0, 2, 4]
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[T]] : tensor<?x3x2x2x2xf32>
// CHECK: stablehlo.reduce([[B]] init: %{{.+}}) applies stablehlo.add across dimensions = [2, 3, 4]
func.func @dynamic(%x: tensor<2x?x2x3x2xf32>, %a: tensor<f32>) -> tensor<?x3xf32> {
  %s = stablehlo.reduce(%x init: %a) applies stablehlo.add across dimensions = [0, 2, 4]
    : (tensor<2x?x2x3x2xf32>, tensor<f32>) -> tensor<?x3xf32>
  return %s : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @uneven
// CHECK: [[T:%.+]] = stablehlo.transpose %arg0, dims = [1, 0, 2]
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[T]]
// CHECK: [[R:%.+]] = stablehlo.reshape [[B]] : (tensor<5x16x5xf32>) -> tensor<5x80xf32>
// CHECK: stablehlo.reduce([[R]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
func.func @uneven(%x: tensor<16x5x5xf32>, %a: tensor<f32>) -> tensor<5xf32> {
  %s = stablehlo.reduce(%x init: %a) applies stablehlo.add across dimensions = [0, 2]
    : (tensor<16x5x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %s : tensor<5xf32>
}
