// RUN: hloforge opt %s --pass=lower-composites | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[Y:%.+]] = stablehlo.tanh %arg0
// CHECK-NEXT: return [[Y]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.composite "my.gelu" %x {decomposition = @gelu_impl} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @gelu_impl(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
