// RUN: hloforge opt %s --pass=decompose-leading-zeros | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xi64>) -> tensor<4xui64>
// CHECK: [[LOW:%.+]] = stablehlo.convert [[X]] : (tensor<4xui64>) -> tensor<4xui32>
// CHECK: [[L:%.+]] = stablehlo.count_leading_zeros [[LOW]] : tensor<4xui32>
// CHECK: [[SHIFTED:%.+]] = stablehlo.shift_right_logical [[X]]
// CHECK: [[UP:%.+]] = stablehlo.convert [[SHIFTED]] : (tensor<4xui64>) -> tensor<4xui32>
// CHECK: [[NONE:%.+]] = stablehlo.compare EQ, [[UP]]
// CHECK: [[MORE:%.+]] = stablehlo.add [[L]]
// CHECK: [[U:%.+]] = stablehlo.count_leading_zeros [[UP]] : tensor<4xui32>
// CHECK: [[N:%.+]] = stablehlo.select [[NONE]], [[MORE]], [[U]]
// CHECK: [[R:%.+]] = stablehlo.convert [[N]] : (tensor<4xui32>) -> tensor<4xi64>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %n = stablehlo.count_leading_zeros %x : tensor<4xi64>
  return %n : tensor<4xi64>
}
