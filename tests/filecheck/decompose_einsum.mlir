// RUN: hloforge opt %s --pass=decompose-einsum | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]] = stablehlo.reduce(%arg0 init: {{%.+}}) applies stablehlo.add across dimensions = [2]
// CHECK-SAME: -> tensor<3x4xf32>
// CHECK: [[D:%.+]] = stablehlo.dot_general [[S]], %arg1, contracting_dims = [1] x [0]
// CHECK-SAME: -> tensor<3x2xf32>
// CHECK: [[R:%.+]] = stablehlo.transpose [[D]], dims = [1, 0]
// CHECK: return [[R]]
func.func @main(%x: tensor<3x4x5xf32>, %y: tensor<4x2xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.einsum %x, %y, config = "ijk,jl->li" : (tensor<3x4x5xf32>, tensor<4x2xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
