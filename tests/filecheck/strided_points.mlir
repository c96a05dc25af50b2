// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// The gradient by the weights of a 1x1 convolution of stride 2.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.slice %{{.+}} [0:8, 0:27:2, 0:64] : (tensor<8x28x64xf32>) -> tensor<8x14x64xf32>
// CHECK-NOT: stablehlo.convolution
// CHECK: stablehlo.dot_general
func.func @main(%x: tensor<8x28x64xf32>, %g: tensor<8x14x32xf32>) -> tensor<1x64x32xf32> {
  %r = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
    window = {pad = [[0, -1]], rhs_dilate = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x28x64xf32>, tensor<8x14x32xf32>) -> tensor<1x64x32xf32>
  return %r : tensor<1x64x32xf32>
}

// The gradient by its image: results are spread.
// CHECK-LABEL: func.func @by_the_image
// CHECK: stablehlo.convolution
// CHECK-NOT: lhs_dilate = [2]
// CHECK: stablehlo.pad %{{.+}}, low = [0, 0, 0], high = [0, 1, 0], interior = [0, 1, 0]
func.func @by_the_image(%g: tensor<8x14x32xf32>, %w: tensor<1x64x32xf32>) -> tensor<8x28x64xf32> {
  %r = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f],
    window = {pad = [[0, 1]], lhs_dilate = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x14x32xf32>, tensor<1x64x32xf32>) -> tensor<8x28x64xf32>
  return %r : tensor<8x28x64xf32>
}

// Windows of several positions stay.
// CHECK-LABEL: func.func @of_three
// CHECK: lhs_dilate = [2]
func.func @of_three(%g: tensor<8x14x32xf32>, %w: tensor<3x64x32xf32>) -> tensor<8x27x64xf32> {
  %r = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f],
    window = {pad = [[1, 1]], lhs_dilate = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x14x32xf32>, tensor<3x64x32xf32>) -> tensor<8x27x64xf32>
  return %r : tensor<8x27x64xf32>
}
