// RUN: hloforge opt %s --pass=decompose-wide-functions | filecheck %s --implicit-check-not=stablehlo.cbrt

// Code generation has a sine of f32, and no cube root of f64.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.sine {{%.+}} : tensor<4xf32>
// CHECK: stablehlo.bitcast_convert {{%.+}} : (tensor<4xf64>) -> tensor<4xui64>
// CHECK: stablehlo.constant dense<1.87595182
// CHECK: [[R:%.+]] = stablehlo.bitcast_convert {{%.+}} : (tensor<4xui64>) -> tensor<4xf64>
// CHECK: [[SQUARE:%.+]] = stablehlo.multiply [[R]], [[R]]
// CHECK: [[Q:%.+]] = stablehlo.divide {{%.+}}, [[SQUARE]]
// CHECK: stablehlo.subtract [[Q]], [[R]]
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf64>) {
  %s = stablehlo.sine %y : tensor<4xf32>
  %r = stablehlo.cbrt %x : tensor<4xf64>
  return %s, %r : tensor<4xf32>, tensor<4xf64>
}
