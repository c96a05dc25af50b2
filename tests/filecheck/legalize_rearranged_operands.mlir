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

// In loops and branches as well, and before a broadcast of what is rearranged.
// CHECK-LABEL: func.func @branches
// CHECK: [[A:%.+]] = stablehlo.abs %arg1 : tensor<4xf32>
// CHECK-NEXT: [[V:%.+]] = stablehlo.reshape [[A]] : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: [[B:%.+]] = stablehlo.broadcast_in_dim [[V]], dims = [0, 1] : (tensor<1x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: stablehlo.return [[B]]
func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = "stablehlo.if"(%c) ({
    %v = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4xf32>
    %b = stablehlo.broadcast_in_dim %v, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<3x4xf32>
    %a = stablehlo.abs %b : tensor<3x4xf32>
    stablehlo.return %a : tensor<3x4xf32>
  }, {
    stablehlo.return %y : tensor<3x4xf32>
  }) : (tensor<i1>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
