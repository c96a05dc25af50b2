// RUN: hloforge opt %s --pass=legalize-reduction-orders | filecheck %s

// Sums over groups of features, which are last in memory: over pixels first, and then within groups.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTS:.+]] = stablehlo.reshape %arg0 : (tensor<128x128x64xf32>) -> tensor<128x128x32x2xf32>
// CHECK: %[[LINE:.+]] = stablehlo.reduce(%[[PARTS]] init: %{{.+}}) applies stablehlo.add across dimensions = [0, 1]
// CHECK-SAME: -> tensor<32x2xf32>
// CHECK: stablehlo.reduce(%[[LINE]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
// CHECK-SAME: -> tensor<32xf32>
func.func @main(%y: tensor<128x128x64xf32>, %start: tensor<f32>) -> tensor<32xf32> {
  %t = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<128x128x64xf32>) -> tensor<64x128x128xf32>
  %g = stablehlo.reshape %t : (tensor<64x128x128xf32>) -> tensor<32x32768xf32>
  %s = stablehlo.reduce(%g init: %start) applies stablehlo.add across dimensions = [1]
    : (tensor<32x32768xf32>, tensor<f32>) -> tensor<32xf32>
  return %s : tensor<32xf32>
}

// What is computed of it, and of a number for each group, is computed in memory's order.
// CHECK-LABEL: func.func @centred
// CHECK: %[[MEAN:.+]] = stablehlo.broadcast_in_dim %{{.+}}, dims = [2] : (tensor<32xf32>) -> tensor<128x128x32x2xf32>
// CHECK: stablehlo.subtract %{{.+}}, %[[MEAN]] : tensor<128x128x32x2xf32>
func.func @centred(%y: tensor<128x128x64xf32>, %mean: tensor<32xf32>, %start: tensor<f32>) -> tensor<32xf32> {
  %t = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<128x128x64xf32>) -> tensor<64x128x128xf32>
  %g = stablehlo.reshape %t : (tensor<64x128x128xf32>) -> tensor<32x32768xf32>
  %m = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<32xf32>) -> tensor<32x32768xf32>
  %d = stablehlo.subtract %g, %m : tensor<32x32768xf32>
  %s = stablehlo.reduce(%d init: %start) applies stablehlo.maximum across dimensions = [1]
    : (tensor<32x32768xf32>, tensor<f32>) -> tensor<32xf32>
  return %s : tensor<32xf32>
}

// Rows that lie in memory's order stay.
// CHECK-LABEL: func.func @in_order
// CHECK: stablehlo.reduce(%{{.+}} init: %{{.+}}) applies stablehlo.add across dimensions = [2]
func.func @in_order(%y: tensor<64x32x128xf32>, %start: tensor<f32>) -> tensor<32x64xf32> {
  %t = stablehlo.transpose %y, dims = [1, 0, 2] : (tensor<64x32x128xf32>) -> tensor<32x64x128xf32>
  %s = stablehlo.reduce(%t init: %start) applies stablehlo.add across dimensions = [2]
    : (tensor<32x64x128xf32>, tensor<f32>) -> tensor<32x64xf32>
  return %s : tensor<32x64xf32>
}

// An array that is repeated twice has an order of its own.
// CHECK-LABEL: func.func @two_orders
// CHECK: stablehlo.reduce(%{{.+}} init: %{{.+}}) applies stablehlo.add across dimensions = [1, 2]
func.func @two_orders(%y: tensor<64x2x64xf32>, %z: tensor<64x64xf32>, %start: tensor<f32>) -> tensor<64xf32> {
  %t = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<64x2x64xf32>) -> tensor<64x64x2xf32>
  %b = stablehlo.broadcast_in_dim %z, dims = [0, 1] : (tensor<64x64xf32>) -> tensor<64x64x2xf32>
  %d = stablehlo.multiply %t, %b : tensor<64x64x2xf32>
  %s = stablehlo.reduce(%d init: %start) applies stablehlo.add across dimensions = [1, 2]
    : (tensor<64x64x2xf32>, tensor<f32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
