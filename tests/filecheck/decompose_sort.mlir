// RUN: hloforge opt %s --pass=decompose-sort | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0 : (tensor<9xf32>) -> tensor<1x9xf32>
// CHECK: [[V:%.+]] = stablehlo.reshape %arg1 : (tensor<9xi32>) -> tensor<1x9xi32>
// CHECK: [[F:%.+]] = stablehlo.negate [[X]]
// CHECK: [[BITS:%.+]] = stablehlo.bitcast_convert [[F]] : (tensor<1x9xf32>) -> tensor<1x9xi32>
// CHECK: [[K:%.+]] = stablehlo.xor
// CHECK: [[S:%.+]]:3 = "stablehlo.sort"([[K]], [[KEYS:%.+]], [[V]]) <{dimension = 1 : i64, is_stable = true}>
// CHECK: {hloforge.keys = 1 : i64}
// CHECK: stablehlo.bitcast_convert [[S]]#1 : (tensor<1x9xi32>) -> tensor<1x9xf32>
// CHECK: stablehlo.reshape [[S]]#2
func.func @main(%keys: tensor<9xf32>, %values: tensor<9xi32>) -> (tensor<9xf32>, tensor<9xi32>) {
  %0:2 = "stablehlo.sort"(%keys, %values) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %f = stablehlo.negate %a : tensor<f32>
    %g = stablehlo.negate %b : tensor<f32>
    %p = stablehlo.compare LT, %f, %g : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<9xf32>, tensor<9xi32>) -> (tensor<9xf32>, tensor<9xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi32>
}
