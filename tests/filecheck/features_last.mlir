// RUN: hloforge opt %s --pass=unfold-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[X:%.+]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 1]
// CHECK-DAG: [[W:%.+]] = stablehlo.transpose %arg1, dims = [2, 3, 1, 0]
// CHECK: [[XB:%.+]] = stablehlo.optimization_barrier [[X]]
// CHECK: [[WB:%.+]] = stablehlo.optimization_barrier [[W]]
// CHECK: [[C:%.+]] = stablehlo.convolution([[XB]], [[WB]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[C]]
// CHECK: [[Y:%.+]] = stablehlo.transpose [[B]], dims = [0, 3, 1, 2]
// CHECK: return [[Y]]
func.func @main(%x: tensor<1x3x64x64xf32>, %w: tensor<64x3x7x7xf32>) -> tensor<1x64x29x29xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x3x64x64xf32>, tensor<64x3x7x7xf32>) -> tensor<1x64x29x29xf32>
  return %y : tensor<1x64x29x29xf32>
}
