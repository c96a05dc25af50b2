// RUN: hloforge opt %s --pass=legalize-rearranged-operands | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]] = stablehlo.sqrt %arg0 : tensor<4x4xf32>
// CHECK: [[R:%.+]] = stablehlo.transpose [[S]], dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = stablehlo.sqrt %t : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
