// RUN: hloforge opt %s --pass=legalize-sign-conversions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[W:%.+]] = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<i64>
// CHECK-NEXT: [[R:%.+]] = stablehlo.bitcast_convert [[W]] : (tensor<i64>) -> tensor<ui64>
// CHECK-NEXT: return [[R]]
func.func @main(%x: tensor<i32>) -> tensor<ui64> {
  %r = stablehlo.convert %x : (tensor<i32>) -> tensor<ui64>
  return %r : tensor<ui64>
}
