// RUN: hloforge opt %s --pass=legalize-small-erf | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[E:%.+]] = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>
// CHECK: stablehlo.abs %arg0
// CHECK: [[M:%.+]] = stablehlo.compare LT
// CHECK: [[P:%.+]] = stablehlo.multiply %arg0
// CHECK: [[R:%.+]] = stablehlo.select [[M]], [[P]], [[E]]
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
