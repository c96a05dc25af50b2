// RUN: hloforge opt %s --pass=legalize-window-padding | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.pad %arg0, %arg1, low = [2], high = [0], interior = [0]
// CHECK-SAME: -> tensor<10xui16>
// CHECK: [[R:%.+]] = "stablehlo.reduce_window"([[P]], %arg1)
// CHECK-NOT: padding
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

// A running sum of five dimensions.
// CHECK-LABEL: func.func @running
// CHECK: %[[X:.+]] = stablehlo.reshape %arg0 : (tensor<2x4x3x3x4xi64>) -> tensor<1x2x144xi64>
// CHECK: %[[R:.+]] = "stablehlo.reduce_window"(%[[X]], %{{.+}}) <{padding = dense<{{.}}[0, 0], [1, 0], [0, 0]]>
// CHECK-SAME: window_dimensions = array<i64: 1, 2, 1>
// CHECK: stablehlo.reshape %[[R]] : (tensor<1x2x144xi64>) -> tensor<2x4x3x3x4xi64>
func.func @running(%x: tensor<2x4x3x3x4xi64>) -> tensor<2x4x3x3x4xi64> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2, 1, 1, 1, 1>,
      padding = dense<[[1, 0], [0, 0], [0, 0], [0, 0], [0, 0]]> : tensor<5x2xi64>}> ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %s = stablehlo.add %a, %b : tensor<i64>
      stablehlo.return %s : tensor<i64>
  }) : (tensor<2x4x3x3x4xi64>, tensor<i64>) -> tensor<2x4x3x3x4xi64>
  return %r : tensor<2x4x3x3x4xi64>
}
