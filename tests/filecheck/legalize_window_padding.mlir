// RUN: hloforge opt %s --pass=legalize-window-padding | filecheck %s --implicit-check-not=padding

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.pad %arg0, %arg1, low = [2], high = [0], interior = [0]
// CHECK-SAME: -> tensor<10xui16>
// CHECK: [[R:%.+]] = "stablehlo.reduce_window"([[P]], %arg1)
// CHECK-SAME: window_dimensions = array<i64: 3>
// CHECK: (tensor<10xui16>, tensor<ui16>) -> tensor<8xui16>
// CHECK: return [[R]]
func.func @main(%x: tensor<8xui16>, %init: tensor<ui16>) -> tensor<8xui16> {
  %r = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<ui16>, %b: tensor<ui16>):
    %s = stablehlo.add %a, %b : tensor<ui16>
    stablehlo.return %s : tensor<ui16>
  }) {window_dimensions = array<i64: 3>, padding = dense<[[2, 0]]> : tensor<1x2xi64>}
    : (tensor<8xui16>, tensor<ui16>) -> tensor<8xui16>
  return %r : tensor<8xui16>
}
