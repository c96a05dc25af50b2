// RUN: hloforge opt %s --pass=legalize-whole-windows | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]] = stablehlo.reduce(%arg0 init: %{{.+}}) applies stablehlo.add across dimensions = [0, 1, 2]
// CHECK-NEXT: [[W:%.+]] = stablehlo.reshape [[S]] : (tensor<f32>) -> tensor<1x1x1xf32>
// CHECK: return [[W]]
func.func @main(%x: tensor<2x2x2xf32>) -> tensor<1x1x1xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2, 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x2x2xf32>, tensor<f32>) -> tensor<1x1x1xf32>
  return %w : tensor<1x1x1xf32>
}
