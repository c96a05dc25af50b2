// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.convolution
// CHECK: stablehlo.dot_general {{.+}} : (tensor<1536x576xf32>, tensor<576x48xf32>) -> tensor<1536x48xf32>
func.func @main(%x: tensor<1x192x48xf32>, %w: tensor<1536x192x3xf32>) -> tensor<1x1536x48xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x192x48xf32>, tensor<1536x192x3xf32>) -> tensor<1x1536x48xf32>
  return %r : tensor<1x1536x48xf32>
}

// Of many pixels patches cost more than packed weights.
// CHECK-LABEL: func.func @pixels
// CHECK: stablehlo.convolution
func.func @pixels(%x: tensor<1x192x480xf32>, %w: tensor<1536x192x3xf32>) -> tensor<1x1536x480xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x192x480xf32>, tensor<1536x192x3xf32>) -> tensor<1x1536x480xf32>
  return %r : tensor<1x1536x480xf32>
}
