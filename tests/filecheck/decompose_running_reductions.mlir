// RUN: hloforge opt %s --pass=decompose-running-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[PADDED:%.+]] = stablehlo.pad %arg0, [[ZERO:%.+]], low = [0], high = [8], interior = [0]
// CHECK: stablehlo.reshape [[PADDED]] : (tensor<48xbf16>) -> tensor<3x16xbf16>
// CHECK: [[WITHIN:%.+]] = "stablehlo.reduce_window"(%{{.+}}, [[ZERO]])
// CHECK-SAME: padding = dense<{{.*}}15, 0{{.*}}> : tensor<2x2xi64>
// CHECK-SAME: window_dimensions = array<i64: 16, 1>
// CHECK: [[TOTALS:%.+]] = "stablehlo.reduce_window"(%{{.+}}, [[ZERO]])
// CHECK-SAME: window_dimensions = array<i64: 3>
// CHECK: [[BEFORE:%.+]] = stablehlo.slice %{{.+}} [0:3]
// CHECK: [[OTHERS:%.+]] = stablehlo.broadcast_in_dim [[BEFORE]], dims = [0] : (tensor<3xbf16>) -> tensor<3x16xbf16>
// CHECK: stablehlo.add %{{.+}}, [[OTHERS]] : tensor<3x16xbf16>
// CHECK: stablehlo.slice %{{.+}} [0:40]
func.func @main(%x: tensor<40xbf16>, %exact: tensor<40xf32>) -> (tensor<40xbf16>, tensor<40xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %r = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 40>,
    padding = dense<[[39, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<40xbf16>, tensor<bf16>) -> tensor<40xbf16>
  %wide = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: "stablehlo.reduce_window"(%arg1, %{{.+}})
  // CHECK-SAME: window_dimensions = array<i64: 40>
  %f = "stablehlo.reduce_window"(%exact, %wide) <{window_dimensions = array<i64: 40>,
    padding = dense<[[39, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<40xf32>, tensor<f32>) -> tensor<40xf32>
  return %r, %f : tensor<40xbf16>, tensor<40xf32>
}
