// RUN: hloforge opt %s --pass=decompose-convolution | filecheck %s --implicit-check-not=stablehlo.convolution

// CHECK-LABEL: func.func @main
// CHECK: [[U:%.+]] = "stablehlo.gather"(
// CHECK: stablehlo.dot_general {{.*}}batching_dims = {{.*}}contracting_dims
// CHECK: return {{%.+}} : tensor<1x6x4xf32>
func.func @main(%x: tensor<1x8x4xf32>, %w: tensor<3x2x4xf32>) -> tensor<1x6x4xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<1x8x4xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>
  return %y : tensor<1x6x4xf32>
}
