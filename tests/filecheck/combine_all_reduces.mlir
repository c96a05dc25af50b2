// RUN: hloforge opt %s --keep-marks --pass=combine-all-reduces | filecheck %s

// What reads the first waits for the second; the third needs the first, and the fourth is a maximum.
// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]]:2 = "stablehlo.all_reduce"(%arg0, %arg1)
// CHECK: stablehlo.add
// CHECK: [[N:%.+]] = stablehlo.negate [[S]]#0
// CHECK: [[T:%.+]] = "stablehlo.all_reduce"([[N]])
// CHECK: [[M:%.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: stablehlo.maximum
// CHECK: return [[S]]#1, [[T]], [[M]]
module attributes {hloforge.grid = array<i64: 2, 1>} {
  func.func @main(%x: tensor<3xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<3xf32>) {
    %s = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>
    %n = stablehlo.negate %s : tensor<3xf32>
    %u = "stablehlo.all_reduce"(%y) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    %v = "stablehlo.all_reduce"(%n) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>
    %m = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>
    return %u, %v, %m : tensor<4xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
