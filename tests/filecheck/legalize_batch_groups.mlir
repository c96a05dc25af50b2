// RUN: hloforge opt %s --pass=legalize-batch-groups | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[G:%.+]] = stablehlo.reshape %arg0 : (tensor<6x9x4xbf16>) -> tensor<2x3x9x4xbf16>
// CHECK: [[T:%.+]] = stablehlo.transpose [[G]], dims = [1, 2, 0, 3]
// CHECK: [[F:%.+]] = stablehlo.reshape [[T]] : (tensor<3x9x2x4xbf16>) -> tensor<3x9x8xbf16>
// CHECK: [[Y:%.+]] = stablehlo.convolution([[F]], %arg1)
// CHECK-SAME: batch_group_count = 1 : i64, feature_group_count = 2 : i64
// CHECK: return [[Y]]
func.func @main(%x: tensor<6x9x4xbf16>, %w: tensor<1x4x8xbf16>) -> tensor<3x9x8xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
      : (tensor<6x9x4xbf16>, tensor<1x4x8xbf16>) -> tensor<3x9x8xf32>
  return %y : tensor<3x9x8xf32>
}
