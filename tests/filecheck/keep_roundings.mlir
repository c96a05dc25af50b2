// RUN: hloforge opt %s --pass=keep-roundings | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[R:%.+]] = stablehlo.reduce_precision %arg0, format = e8m7 : tensor<4xf32>
// CHECK-NEXT: [[Y:%.+]] = stablehlo.convert [[R]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: [[B:%.+]] = stablehlo.convert [[Y]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: return [[B]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %z = stablehlo.convert %y : (tensor<4xbf16>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
