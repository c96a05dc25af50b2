// RUN: hloforge opt %s --pass=legalize-block-products | filecheck %s

// Codes of 4 bits: the bytes are read as they are, and scales and starts are those of lanes.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @hloforge.block_product(%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %arg2, %{{[0-9]+}})
// CHECK-SAME: codes = array<i64: 0, 15, 0, 4, 15, 0>
// CHECK-SAME: is_unsigned = true
// CHECK-SAME: (tensor<3x64xi8>, tensor<3x64xi8>, tensor<3x16xf32>, tensor<3x16xi32>, tensor<5x4x16xui8>, tensor<5x4xf32>) -> tensor<3x5xf32>
func.func @main(%even: tensor<3x4x16xi8>, %odd: tensor<3x4x16xi8>, %bytes: tensor<5x4x16xui8>, %starts: tensor<4x3xi32>, %left: tensor<4x3xf32>, %right: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c15 = stablehlo.constant dense<15> : tensor<5x4x16xui8>
  %c4 = stablehlo.constant dense<4> : tensor<5x4x16xui8>
  %low = stablehlo.and %bytes, %c15 : tensor<5x4x16xui8>
  %high = stablehlo.shift_right_logical %bytes, %c4 : tensor<5x4x16xui8>
  %e = stablehlo.convert %even : (tensor<3x4x16xi8>) -> tensor<3x4x16xi32>
  %o = stablehlo.convert %odd : (tensor<3x4x16xi8>) -> tensor<3x4x16xi32>
  %l = stablehlo.convert %low : (tensor<5x4x16xui8>) -> tensor<5x4x16xi32>
  %h = stablehlo.convert %high : (tensor<5x4x16xui8>) -> tensor<5x4x16xi32>
  %d0 = stablehlo.dot_general %e, %l, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<3x4x16xi32>, tensor<5x4x16xi32>) -> tensor<4x3x5xi32>
  %d1 = stablehlo.dot_general %o, %h, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<3x4x16xi32>, tensor<5x4x16xi32>) -> tensor<4x3x5xi32>
  %s = stablehlo.broadcast_in_dim %starts, dims = [0, 1] : (tensor<4x3xi32>) -> tensor<4x3x5xi32>
  %a = stablehlo.add %d0, %s : tensor<4x3x5xi32>
  %b = stablehlo.add %a, %d1 : tensor<4x3x5xi32>
  %f = stablehlo.convert %b : (tensor<4x3x5xi32>) -> tensor<4x3x5xf32>
  %x = stablehlo.broadcast_in_dim %left, dims = [0, 1] : (tensor<4x3xf32>) -> tensor<4x3x5xf32>
  %y = stablehlo.broadcast_in_dim %right, dims = [0, 2] : (tensor<4x5xf32>) -> tensor<4x3x5xf32>
  %fx = stablehlo.multiply %f, %x : tensor<4x3x5xf32>
  %fxy = stablehlo.multiply %fx, %y : tensor<4x3x5xf32>
  %r = stablehlo.reduce(%fxy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// Of f32 there is none.
// CHECK-LABEL: func.func @floats
// CHECK: stablehlo.dot_general
// CHECK-NOT: hloforge.block_product
func.func @floats(%x: tensor<3x4x16xf32>, %w: tensor<5x4x16xf32>) -> tensor<3x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.dot_general %x, %w, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<3x4x16xf32>, tensor<5x4x16xf32>) -> tensor<4x3x5xf32>
  %r = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}
