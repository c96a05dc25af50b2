// RUN: hloforge opt %s --pass=decompose-power | filecheck %s --implicit-check-not=stablehlo.power

// The magnitude of x is taken by clearing its sign; the logarithm starts with log2 of 1 or 1.5, and 2 / (3 ln 2).
// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xf64>) -> tensor<4xui64>
// CHECK: [[CLEARED:%.+]] = stablehlo.constant dense<9223372036854775807>
// CHECK: [[BITS:%.+]] = stablehlo.and [[X]], [[CLEARED]]
// CHECK: [[MAGNITUDE:%.+]] = stablehlo.bitcast_convert [[BITS]] : (tensor<4xui64>) -> tensor<4xf64>
// CHECK: stablehlo.constant dense<0.96179669392597
// CHECK: stablehlo.constant dense<0.58496248
// CHECK: stablehlo.constant dense<0.693147180559945
// CHECK: stablehlo.shift_left
// CHECK: stablehlo.select
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %p = stablehlo.power %x, %y : tensor<4xf64>
  return %p : tensor<4xf64>
}
