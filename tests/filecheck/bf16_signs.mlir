// RUN: hloforge opt %s --pass=legalize-bf16 | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4xui32>
// CHECK: [[HIGH:%.+]] = stablehlo.shift_right_logical [[X]]
// CHECK: [[ODD:%.+]] = stablehlo.and [[HIGH]]
// CHECK: stablehlo.constant dense<32767>
// CHECK: [[MORE:%.+]] = stablehlo.add [[ODD]]
// CHECK: [[SUM:%.+]] = stablehlo.add [[X]], [[MORE]]
// CHECK: [[B:%.+]] = stablehlo.shift_right_logical [[SUM]]
// CHECK: [[NAN:%.+]] = stablehlo.compare NE, %arg0, %arg0
// CHECK: stablehlo.constant dense<32768>
// CHECK: [[SIGN:%.+]] = stablehlo.and [[HIGH]]
// CHECK: stablehlo.constant dense<32704>
// CHECK: [[SIGNED:%.+]] = stablehlo.or [[SIGN]]
// CHECK: [[C:%.+]] = stablehlo.select [[NAN]], [[SIGNED]], [[B]]
// CHECK: [[D:%.+]] = stablehlo.convert [[C]] : (tensor<4xui32>) -> tensor<4xui16>
// CHECK: [[R:%.+]] = stablehlo.bitcast_convert [[D]] : (tensor<4xui16>) -> tensor<4xbf16>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %r = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}
