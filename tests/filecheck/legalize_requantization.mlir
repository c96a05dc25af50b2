// RUN: hloforge opt %s --pass=legalize-requantization | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.dot_general
// CHECK: [[S:%.+]] = stablehlo.add [[P]], %{{.+}} : tensor<2x2xi32>
// CHECK: [[F:%.+]] = stablehlo.convert [[S]] : (tensor<2x2xi32>) -> tensor<2x2xf32>
// CHECK: stablehlo.multiply [[F]], %{{.+}} : tensor<2x2xf32>
// CHECK: [[L:%.+]] = stablehlo.maximum %{{.+}}, %{{.+}} : tensor<2x2xf32>
// CHECK: [[H:%.+]] = stablehlo.minimum [[L]], %{{.+}} : tensor<2x2xf32>
// CHECK: [[N:%.+]] = stablehlo.convert [[H]] {hloforge.nearest} : (tensor<2x2xf32>) -> tensor<2x2xi32>
// CHECK: [[Z:%.+]] = stablehlo.add [[N]], %{{.+}} : tensor<2x2xi32>
// CHECK: stablehlo.convert [[Z]] : (tensor<2x2xi32>) -> tensor<2x2xui8>
func.func @main(%x: tensor<2x3xi32>, %y: tensor<3x2xi32>) -> tensor<2x2xui8> {
  %s = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  %f = stablehlo.convert %s : (tensor<2x2xi32>) -> tensor<2x2xf32>
  %quarter = stablehlo.constant dense<0.25> : tensor<2x2xf32>
  %scaled = stablehlo.multiply %f, %quarter : tensor<2x2xf32>
  %bias = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %biases = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %x1 = stablehlo.add %scaled, %biases : tensor<2x2xf32>
  %half = stablehlo.constant dense<0.5> : tensor<2x2xf32>
  %units = stablehlo.divide %x1, %half : tensor<2x2xf32>
  %r = stablehlo.round_nearest_even %units : tensor<2x2xf32>
  %zero = stablehlo.constant dense<128.0> : tensor<2x2xf32>
  %moved = stablehlo.add %r, %zero : tensor<2x2xf32>
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<255.0> : tensor<f32>
  %bounded = stablehlo.clamp %low, %moved, %high : (tensor<f32>, tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %wide = stablehlo.convert %bounded : (tensor<2x2xf32>) -> tensor<2x2xi32>
  %q = stablehlo.convert %wide : (tensor<2x2xi32>) -> tensor<2x2xui8>
  return %q : tensor<2x2xui8>
}
