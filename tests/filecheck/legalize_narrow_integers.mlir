// RUN: hloforge opt %s --pass=legalize-narrow-integers | filecheck %s '--implicit-check-not=xi4>'

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<3xi8>
// CHECK: [[C:%.+]] = stablehlo.constant dense<[1, -2, 7]> : tensor<3xi8>
// CHECK: [[S:%.+]] = stablehlo.add {{%.+}}, [[C]] : tensor<3xi8>
// CHECK: [[L:%.+]] = stablehlo.shift_left [[S]], {{%.+}} : tensor<3xi8>
// CHECK: [[R:%.+]] = stablehlo.shift_right_arithmetic [[L]], {{%.+}} : tensor<3xi8>
// CHECK: return [[R]]
func.func @main(%x: tensor<3xi4>) -> tensor<3xi4> {
  %c = stablehlo.constant dense<[1, -2, 7]> : tensor<3xi4>
  %r = stablehlo.add %x, %c : tensor<3xi4>
  return %r : tensor<3xi4>
}
