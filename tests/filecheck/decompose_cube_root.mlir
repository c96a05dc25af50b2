// RUN: hloforge opt %s --pass=decompose-cube-root | filecheck %s --implicit-check-not=stablehlo.cbrt

// The estimate is the upper half of the bits times 2^32 / 3, as the exponent's third, and a constant.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<1431655766> : tensor<4xui64>
// CHECK: [[BITS:%.+]] = stablehlo.shift_left
// CHECK: [[T:%.+]] = stablehlo.bitcast_convert [[BITS]] : (tensor<4xui64>) -> tensor<4xf64>
// CHECK: stablehlo.constant dense<1.87595182
// CHECK: [[P:%.+]] = stablehlo.add
// CHECK: stablehlo.multiply [[T]], [[P]]
// CHECK: [[R:%.+]] = stablehlo.bitcast_convert {{%.+}} : (tensor<4xui64>) -> tensor<4xf64>
// CHECK: [[SQUARE:%.+]] = stablehlo.multiply [[R]], [[R]]
// CHECK: [[Q:%.+]] = stablehlo.divide {{%.+}}, [[SQUARE]]
// CHECK: stablehlo.subtract [[Q]], [[R]]
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %r = stablehlo.cbrt %x : tensor<4xf64>
  return %r : tensor<4xf64>
}
