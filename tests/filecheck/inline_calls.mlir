// RUN: hloforge opt %s --pass=inline-calls | filecheck %s --implicit-check-not=@relu

// CHECK-LABEL: func.func @main
// CHECK: [[Z:%.+]] = stablehlo.constant dense<0.0
// CHECK: [[R:%.+]] = stablehlo.maximum %arg0, [[Z]]
// CHECK: return [[R]]
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = call @relu(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func private @relu(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<2xf32>
  %r = stablehlo.maximum %x, %zero : tensor<2xf32>
  return %r : tensor<2xf32>
}
