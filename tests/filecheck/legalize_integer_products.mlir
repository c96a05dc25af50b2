// RUN: hloforge opt %s --pass=legalize-integer-products | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[X:%.+]] = stablehlo.convert %arg0 : (tensor<2x3xui8>) -> tensor<2x3xi32>
// CHECK-DAG: [[W:%.+]] = stablehlo.convert %{{.+}} : (tensor<3x2xi8>) -> tensor<3x2xi32>
// CHECK: [[P:%.+]] = stablehlo.dot_general [[X]], [[W]], contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
// CHECK: stablehlo.constant dense<[1152, 1536]> : tensor<2xi32>
// CHECK: [[D:%.+]] = stablehlo.subtract [[P]], %{{.+}} : tensor<2x2xi32>
// CHECK: [[F:%.+]] = stablehlo.convert [[D]] : (tensor<2x2xi32>) -> tensor<2x2xf32>
// CHECK: stablehlo.constant dense<1.250000e-01> : tensor<f32>
// CHECK: stablehlo.multiply [[F]], %{{.+}} : tensor<2x2xf32>
func.func @main(%q: tensor<2x3xui8>) -> tensor<2x2xf32> {
  %zero = stablehlo.constant dense<128.0> : tensor<2x3xf32>
  %half = stablehlo.constant dense<0.5> : tensor<2x3xf32>
  %f = stablehlo.convert %q : (tensor<2x3xui8>) -> tensor<2x3xf32>
  %c = stablehlo.subtract %f, %zero : tensor<2x3xf32>
  %x = stablehlo.multiply %c, %half : tensor<2x3xf32>
  %k = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi8>
  %quarter = stablehlo.constant dense<0.25> : tensor<3x2xf32>
  %g = stablehlo.convert %k : (tensor<3x2xi8>) -> tensor<3x2xf32>
  %w = stablehlo.multiply %g, %quarter : tensor<3x2xf32>
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @convolution
// CHECK: stablehlo.convolution(%{{.+}}, %{{.+}}) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f]
// CHECK-SAME: (tensor<1x9x4xi32>, tensor<1x4x2xi32>) -> tensor<1x9x2xi32>
// CHECK: [[S:%.+]] = stablehlo.abs %{{.+}} : tensor<1x9x2xf32>
// CHECK: stablehlo.transpose [[S]], dims = [0, 2, 1] : (tensor<1x9x2xf32>) -> tensor<1x2x9xf32>
func.func @convolution(%q: tensor<1x4x9xi8>) -> tensor<1x2x9xf32> {
  %x = stablehlo.convert %q : (tensor<1x4x9xi8>) -> tensor<1x4x9xf32>
  %k = stablehlo.constant dense<3> : tensor<2x4x1xi8>
  %w = stablehlo.convert %k : (tensor<2x4x1xi8>) -> tensor<2x4x1xf32>
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x9xf32>, tensor<2x4x1xf32>) -> tensor<1x2x9xf32>
  %s = stablehlo.abs %r : tensor<1x2x9xf32>
  return %s : tensor<1x2x9xf32>
}
