// RUN: hloforge opt %s --pass='fold-replicas{replicas=2}' | filecheck %s --implicit-check-not=stablehlo.all_reduce

// CHECK: func.func @main(%arg0: tensor<2x3xf32>{{.*}}) -> tensor<2x3xf32>
// CHECK: [[S0:%.+]] = stablehlo.slice %arg0 [0:1, 0:3]
// CHECK: [[S1:%.+]] = stablehlo.slice %arg0 [1:2, 0:3]
// CHECK: [[X0:%.+]] = stablehlo.reshape [[S0]] : (tensor<1x3xf32>) -> tensor<3xf32>
// CHECK: [[X1:%.+]] = stablehlo.reshape [[S1]] : (tensor<1x3xf32>) -> tensor<3xf32>
// CHECK: [[S:%.+]] = "stablehlo.map"([[X0]], [[X1]])
// CHECK: stablehlo.add
// CHECK: [[R:%.+]] = stablehlo.broadcast_in_dim [[S]], dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %s = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}
