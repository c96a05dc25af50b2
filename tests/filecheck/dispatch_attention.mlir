// RUN: hloforge opt %s --pass=dispatch-attention | filecheck %s

// CHECK: "flow.executable"
// CHECK: scf.for
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.divf
// CHECK-LABEL: func.func @main
// CHECK: [[O:%.+]] = "flow.dispatch"({{.*}}%arg0, %arg1, %arg2
// CHECK-SAME: hloforge.work = {{[1-9]}}
// CHECK: return [[O]]
func.func @main(%q: tensor<4x128x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>) -> tensor<4x128x64xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scale = stablehlo.constant dense<0.125> : tensor<4x128x128xf32>
  %p = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
    : (tensor<4x128x64xf32>, tensor<4x128x64xf32>) -> tensor<4x128x128xf32>
  %f = stablehlo.multiply %p, %scale : tensor<4x128x128xf32>
  %m = stablehlo.reduce(%f init: %low) applies stablehlo.maximum across dimensions = [2]
    : (tensor<4x128x128xf32>, tensor<f32>) -> tensor<4x128xf32>
  %mm = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x128xf32>
  %d = stablehlo.subtract %f, %mm : tensor<4x128x128xf32>
  %e = stablehlo.exponential %d : tensor<4x128x128xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<4x128x128xf32>, tensor<f32>) -> tensor<4x128xf32>
  %ss = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x128xf32>
  %w = stablehlo.divide %e, %ss : tensor<4x128x128xf32>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<4x128x128xf32>, tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  return %o : tensor<4x128x64xf32>
}
