// RUN: hloforge opt %s --pass=decompose-dynamic-windows | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.dynamic_pad %arg0, %arg1,
// CHECK: [[W:%.+]] = "stablehlo.dynamic_gather"([[P]], [[PLACES:%.+]], [[WINDOW:%.+]])
// CHECK: [[R:%.+]] = stablehlo.reduce([[W]] init: %arg1) applies stablehlo.add across dimensions = [2, 3]
// CHECK: return [[R]]
func.func @main(%x: tensor<?x?xf32>, %zero: tensor<f32>) -> tensor<?x?xf32> {
  %r = "stablehlo.reduce_window"(%x, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}
    : (tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
