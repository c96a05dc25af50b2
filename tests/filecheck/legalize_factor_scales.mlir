// RUN: hloforge opt %s --pass=legalize-factor-scales | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[C:%.+]] = stablehlo.constant dense<1.250000e-01> : tensor<8x1x64xf32>
// CHECK: [[Q:%.+]] = stablehlo.multiply %arg0, [[C]] : tensor<8x1x64xf32>
// CHECK: [[T:%.+]] = stablehlo.transpose %arg1, dims = [0, 2, 1]
// CHECK: stablehlo.dot_general [[Q]], [[T]]
func.func @main(%x: tensor<8x1x64xf32>, %y: tensor<8x200x64xf32>) -> tensor<8x1x200xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<8x1x64xf32>
  %quarter = stablehlo.constant dense<0.25> : tensor<8x200x64xf32>
  %q = stablehlo.multiply %x, %half : tensor<8x1x64xf32>
  %k = stablehlo.multiply %y, %quarter : tensor<8x200x64xf32>
  %t = stablehlo.transpose %k, dims = [0, 2, 1] : (tensor<8x200x64xf32>) -> tensor<8x64x200xf32>
  %s = stablehlo.dot_general %q, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x1x64xf32>, tensor<8x64x200xf32>) -> tensor<8x1x200xf32>
  return %s : tensor<8x1x200xf32>
}

// Exponentials that their sums divide.
// CHECK-LABEL: func.func @shares
// CHECK: [[E:%.+]] = stablehlo.exponential
// CHECK: [[S:%.+]] = stablehlo.reduce([[E]]
// CHECK: [[P:%.+]] = stablehlo.dot_general [[E]], %arg1
// CHECK: stablehlo.divide [[P]], %{{.+}} : tensor<5x8xf32>
func.func @shares(%x: tensor<5x40xf32>, %v: tensor<40x8xf32>) -> tensor<5x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<5x40xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x40xf32>, tensor<f32>) -> tensor<5xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<5xf32>) -> tensor<5x40xf32>
  %d = stablehlo.divide %e, %b : tensor<5x40xf32>
  %r = stablehlo.dot_general %d, %v, contracting_dims = [1] x [0] : (tensor<5x40xf32>, tensor<40x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// Sums along another dimension, and one factor alone.
// CHECK-LABEL: func.func @others
// CHECK: [[D:%.+]] = stablehlo.divide
// CHECK: stablehlo.dot_general [[D]], [[M:%.+]],
func.func @others(%x: tensor<5x40xf32>, %v: tensor<40x8xf32>) -> tensor<5x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.exponential %x : tensor<5x40xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5x40xf32>, tensor<f32>) -> tensor<40xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<40xf32>) -> tensor<5x40xf32>
  %d = stablehlo.divide %e, %b : tensor<5x40xf32>
  %half = stablehlo.constant dense<0.5> : tensor<40x8xf32>
  %m = stablehlo.multiply %v, %half : tensor<40x8xf32>
  %r = stablehlo.dot_general %d, %m, contracting_dims = [1] x [0] : (tensor<5x40xf32>, tensor<40x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}
