// RUN: hloforge opt %s --pass=decompose-batch-norm | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[MEAN:%.+]] = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<3xf32>) -> tensor<5x3xf32>
// CHECK-DAG: [[D:%.+]] = stablehlo.subtract %arg0, [[MEAN]]
// CHECK-DAG: [[EPSILON:%.+]] = stablehlo.constant dense<1.000000e-03> : tensor<3xf32>
// CHECK-DAG: [[V:%.+]] = stablehlo.add %arg4, [[EPSILON]] : tensor<3xf32>
// CHECK-DAG: [[R:%.+]] = stablehlo.rsqrt [[V]]
// CHECK: [[F:%.+]] = stablehlo.multiply [[R]], %arg1 : tensor<3xf32>
// CHECK: [[FACTOR:%.+]] = stablehlo.broadcast_in_dim [[F]], dims = [1]
// CHECK: [[P:%.+]] = stablehlo.multiply [[D]], [[FACTOR]]
// CHECK: [[OFFSET:%.+]] = stablehlo.broadcast_in_dim %arg2, dims = [1]
// CHECK: [[Y:%.+]] = stablehlo.add [[P]], [[OFFSET]]
// CHECK: return [[Y]]
func.func @main(%x: tensor<5x3xf32>, %scale: tensor<3xf32>, %offset: tensor<3xf32>, %mean: tensor<3xf32>,
    %variance: tensor<3xf32>) -> tensor<5x3xf32> {
  %y = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance)
    {epsilon = 1.0e-3 : f32, feature_index = 1 : i64}
    : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
