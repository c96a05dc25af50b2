// RUN: hloforge opt %s --pass=decompose-pred-arithmetic | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[S:%.+]] = stablehlo.or %arg0, %arg1 : tensor<4xi1>
// CHECK-NEXT: return [[S]]
func.func @main(%a: tensor<4xi1>, %b: tensor<4xi1>) -> tensor<4xi1> {
  %s = stablehlo.add %a, %b : tensor<4xi1>
  return %s : tensor<4xi1>
}
