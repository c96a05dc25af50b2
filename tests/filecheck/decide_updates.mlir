// RUN: hloforge opt %s --pass=decide-updates | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[C:%.+]] = stablehlo.constant dense<true> : tensor<i1>
// CHECK: [[TRUE:%.+]]:2 = stablehlo.optimization_barrier [[C]]
// CHECK: [[V:%.+]] = stablehlo.negate %arg0
// CHECK: [[T:%.+]] = stablehlo.convert [[TRUE]]#1 : (tensor<i1>) -> tensor<f32>
// CHECK: [[N:%.+]] = stablehlo.broadcast_in_dim [[T]]
// CHECK: [[S:%.+]] = stablehlo.select [[TRUE]]#1, [[V]], [[N]] : tensor<i1>, tensor<8xf32>
// CHECK: [[W:%.+]] = stablehlo.optimization_barrier [[S]]
// CHECK: [[U:%.+]] = stablehlo.dynamic_update_slice [[W]], %arg1, %arg2
// CHECK: return [[U]], [[V]]
func.func @main(%x: tensor<8xf32>, %part: tensor<2xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %v = stablehlo.negate %x : tensor<8xf32>
  %u = stablehlo.dynamic_update_slice %v, %part, %i : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  return %u, %v : tensor<8xf32>, tensor<8xf32>
}
