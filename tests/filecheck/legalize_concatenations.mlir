// RUN: hloforge opt %s --pass=legalize-concatenations | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.concatenate
// CHECK: [[Y:%.+]] = stablehlo.select {{%.+}}, {{%.+}}, {{%.+}} : tensor<2xi1>, tensor<2xui32>
// CHECK: [[Z:%.+]] = stablehlo.select {{%.+}}, {{%.+}}, {{%.+}} : tensor<2xi1>, tensor<2xui32>
// CHECK: return [[Y]], [[Z]]
func.func @main(%a: tensor<1xui32>, %b: tensor<1xui32>, %c: tensor<1xui32>) -> (tensor<2xui32>, tensor<2xui32>) {
  %y = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
  %z = stablehlo.concatenate %a, %c, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
  return %y, %z : tensor<2xui32>, tensor<2xui32>
}
