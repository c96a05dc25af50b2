// RUN: hloforge opt %s --pass=keep-truncations --keep-marks | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[C:%.+]] = stablehlo.ceil %arg0 {hloforge.normal}
// CHECK: [[G:%.+]] = stablehlo.floor %arg0 {hloforge.normal}
// CHECK: [[F:%.+]] = stablehlo.floor %arg0 : tensor<4xbf16>
// CHECK: [[T:%.+]] = stablehlo.select {{%.+}}, [[C]], [[G]]
// CHECK: return [[T]], [[F]]
func.func @main(%x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4xbf16>
  %p = stablehlo.compare LT, %x, %zero : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xi1>
  %c = stablehlo.ceil %x : tensor<4xbf16>
  %f = stablehlo.floor %x : tensor<4xbf16>
  %t = stablehlo.select %p, %c, %f : tensor<4xi1>, tensor<4xbf16>
  return %t, %f : tensor<4xbf16>, tensor<4xbf16>
}
