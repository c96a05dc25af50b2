// RUN: hloforge opt %s --pass=legalize-shifted-windows | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = "stablehlo.reduce_window"(%arg0, %{{.+}}) <{padding = dense<{{\[\[}}9, -1]]> : tensor<1x2xi64>
// CHECK: (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 9>, padding = dense<[[8, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  %r = stablehlo.pad %w, %zero, low = [1], high = [-1], interior = [0] : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// The last result is read, no prefix.
// CHECK-LABEL: func.func @last
// CHECK: stablehlo.slice
func.func @last(%x: tensor<9xf32>) -> tensor<1xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 9>, padding = dense<[[8, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  %r = stablehlo.slice %w [8:9] : (tensor<9xf32>) -> tensor<1xf32>
  return %r : tensor<1xf32>
}
