// RUN: hloforge opt %s --pass=decompose-map | filecheck %s --implicit-check-not=stablehlo.map

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
// CHECK: [[R:%.+]] = stablehlo.add [[P]], {{%.+}} : tensor<4xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = "stablehlo.map"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %p = stablehlo.multiply %a, %b : tensor<f32>
    %s = stablehlo.add %p, %one : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
