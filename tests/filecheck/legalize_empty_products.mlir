// RUN: hloforge opt %s --pass=legalize-empty-products | filecheck %s --implicit-check-not=stablehlo.dot_general

// CHECK-LABEL: func.func @main
// CHECK: [[FALSE:%.+]] = stablehlo.constant dense<false> : tensor<i1>
// CHECK: [[R:%.+]] = stablehlo.broadcast_in_dim [[FALSE]], dims = [] : (tensor<i1>) -> tensor<2x3xi1>
// CHECK: return [[R]]
func.func @main(%x: tensor<2x0xi1>, %y: tensor<0x3xi1>) -> tensor<2x3xi1> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x0xi1>, tensor<0x3xi1>) -> tensor<2x3xi1>
  return %r : tensor<2x3xi1>
}
