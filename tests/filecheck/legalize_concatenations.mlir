// RUN: hloforge opt %s --pass=legalize-concatenations | filecheck %s --implicit-check-not=stablehlo.concatenate

// CHECK-LABEL: func.func @main
// CHECK: [[PLACE:%.+]] = stablehlo.iota dim = 0 : tensor<2xi32>
// CHECK: [[B:%.+]] = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<1xui32>) -> tensor<2xui32>
// CHECK: [[A:%.+]] = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<1xui32>) -> tensor<2xui32>
// CHECK: [[ONE:%.+]] = stablehlo.constant dense<1> : tensor<2xi32>
// CHECK: [[FIRST:%.+]] = stablehlo.compare LT, [[PLACE]], [[ONE]]
// CHECK: [[Y:%.+]] = stablehlo.select [[FIRST]], [[A]], [[B]] : tensor<2xi1>, tensor<2xui32>
// CHECK: [[C:%.+]] = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<1xui32>) -> tensor<2xui32>
// CHECK: [[Z:%.+]] = stablehlo.select {{%.+}}, {{%.+}}, [[C]] : tensor<2xi1>, tensor<2xui32>
// CHECK: return [[Y]], [[Z]]
func.func @main(%a: tensor<1xui32>, %b: tensor<1xui32>, %c: tensor<1xui32>) -> (tensor<2xui32>, tensor<2xui32>) {
  %y = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
  %z = stablehlo.concatenate %a, %c, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
  return %y, %z : tensor<2xui32>, tensor<2xui32>
}
