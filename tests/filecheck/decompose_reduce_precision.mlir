// RUN: hloforge opt %s --pass=decompose-reduce-precision | filecheck %s --implicit-check-not=stablehlo.reduce_precision

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4xui32>
// CHECK: [[DROPPED:%.+]] = stablehlo.constant dense<21> : tensor<4xui32>
// CHECK: [[KEPT:%.+]] = stablehlo.shift_right_logical [[X]], [[DROPPED]]
// CHECK: [[ODD:%.+]] = stablehlo.and [[KEPT]], {{%.+}}
// CHECK: [[TIES:%.+]] = stablehlo.add [[X]], [[ODD]]
// CHECK: [[HALF:%.+]] = stablehlo.constant dense<1048575> : tensor<4xui32>
// CHECK: [[SUM:%.+]] = stablehlo.add [[TIES]], [[HALF]]
// CHECK: [[MASK:%.+]] = stablehlo.constant dense<4292870144> : tensor<4xui32>
// CHECK: [[B:%.+]] = stablehlo.and [[SUM]], [[MASK]]
// CHECK: [[LARGE:%.+]] = stablehlo.compare GT
// CHECK: [[I:%.+]] = stablehlo.select [[LARGE]], {{%.+}}, [[B]]
// CHECK: [[SMALL:%.+]] = stablehlo.compare LE
// CHECK: [[Z:%.+]] = stablehlo.select [[SMALL]], {{%.+}}, [[I]]
// CHECK: [[NAN:%.+]] = stablehlo.compare GT
// CHECK: [[R:%.+]] = stablehlo.select [[NAN]], [[X]], [[Z]]
// CHECK: stablehlo.bitcast_convert [[R]] : (tensor<4xui32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.reduce_precision %x, format = e5m2 : tensor<4xf32>
  return %r : tensor<4xf32>
}
