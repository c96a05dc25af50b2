// RUN: hloforge opt %s --pass=decompose-unsigned-division | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[BITS:%.+]] = stablehlo.constant dense<31>
// CHECK: [[TOP:%.+]] = stablehlo.shift_right_logical %arg1, [[BITS]]
// CHECK: [[LARGE:%.+]] = stablehlo.compare NE, [[TOP]]
// CHECK: [[HALF:%.+]] = stablehlo.shift_right_logical %arg0, {{%.+}}
// CHECK: [[H:%.+]] = stablehlo.bitcast_convert [[HALF]] : (tensor<4xui32>) -> tensor<4xi32>
// CHECK: [[MINUS:%.+]] = stablehlo.negate [[H]]
// CHECK: [[Q:%.+]] = stablehlo.divide [[MINUS]], {{%.+}} : tensor<4xi32>
// CHECK-NOT: stablehlo.divide
// CHECK: [[TWICE:%.+]] = stablehlo.shift_left
// CHECK: [[LOW:%.+]] = stablehlo.select [[LARGE]], {{%.+}}, [[TWICE]]
// CHECK: [[GOES:%.+]] = stablehlo.compare GE, {{%.+}}, %arg1
// CHECK: [[MORE:%.+]] = stablehlo.add [[LOW]]
// CHECK: stablehlo.select [[GOES]], [[MORE]], [[LOW]]
// CHECK: return {{%.+}} : tensor<4xui32>
func.func @main(%x: tensor<4xui32>, %y: tensor<4xui32>) -> tensor<4xui32> {
  %q = stablehlo.divide %x, %y : tensor<4xui32>
  return %q : tensor<4xui32>
}
