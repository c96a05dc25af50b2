// RUN: hloforge opt %s --pass=decompose-select-and-scatter | filecheck %s --implicit-check-not=stablehlo.select_and_scatter

// CHECK-LABEL: func.func @main
// CHECK-COUNT-9: stablehlo.select {{%.+}}, {{%.+}}, {{%.+}} : tensor<3x3xi1>, tensor<3x3xi32>
// CHECK-NOT: stablehlo.select {{%.+}}, {{%.+}}, {{%.+}} : tensor<3x3xi1>, tensor<3x3xi32>
// CHECK-COUNT-4: stablehlo.select {{%.+}}, {{%.+}}, {{%.+}} : tensor<8x8xi1>, tensor<8x8xf32>
// CHECK: return {{%.+}} : tensor<8x8xf32>
func.func @main(%x: tensor<8x8xf32>, %s: tensor<3x3xf32>, %init: tensor<f32>) -> tensor<8x8xf32> {
  %r = "stablehlo.select_and_scatter"(%x, %s, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) {window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 2>}
    : (tensor<8x8xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
