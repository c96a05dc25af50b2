// RUN: hloforge opt %s --pass=legalize-image-layouts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[W:.+]] = stablehlo.constant dense<{{.*}}> : tensor<1x1x64x64xf32>
// CHECK: %[[X:.+]] = stablehlo.transpose %{{.+}}, dims = [0, 2, 3, 1]
// CHECK: %[[R:.+]] = stablehlo.convolution(%[[X]], %{{.+}}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
// CHECK: stablehlo.maximum %[[R]], %{{.+}} : tensor<1x56x56x64xf32>
// CHECK: stablehlo.convolution
// CHECK: stablehlo.reduce({{.*}} across dimensions = [1, 2]
// CHECK-NOT: stablehlo.transpose
func.func @main(%x: tensor<1x64x56x56xf32>) -> tensor<1x64xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<64x64x1x1xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<1x64x56x56xf32>
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x64x56x56xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x56x56xf32>
  %m = stablehlo.maximum %r, %zeros : tensor<1x64x56x56xf32>
  %s = stablehlo.convolution(%m, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x64x56x56xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x56x56xf32>
  %t = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [2, 3]
    : (tensor<1x64x56x56xf32>, tensor<f32>) -> tensor<1x64xf32>
  return %t : tensor<1x64xf32>
}

// A convolution of few terms is not worth copies of its image and its result.
// CHECK-LABEL: func.func @short
// CHECK: stablehlo.convolution({{.+}}) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
func.func @short(%x: tensor<1x16x56x56xf32>) -> tensor<1x16x56x56xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<16x16x1x1xf32>
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x16x56x56xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x56x56xf32>
  return %r : tensor<1x16x56x56xf32>
}
