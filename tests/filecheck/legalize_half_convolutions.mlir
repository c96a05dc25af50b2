// RUN: hloforge opt %s --pass=legalize-half-convolutions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.convert %arg0 : (tensor<1x6x6x4xf16>) -> tensor<1x6x6x4xf32>
// CHECK: [[W:%.+]] = stablehlo.constant dense<5.000000e-01> : tensor<3x3x4x8xf32>
// CHECK: [[S:%.+]] = stablehlo.convolution([[X]], [[W]]) {{.+}} -> tensor<1x4x4x8xf32>
// CHECK: stablehlo.convert [[S]] : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf16>
// CHECK: stablehlo.convolution(%arg0, %{{.+}}) {{.+}} : (tensor<1x6x6x4xf16>, tensor<3x3x1x4xf16>) -> tensor<1x4x4x4xf16>
func.func @main(%x: tensor<1x6x6x4xf16>) -> (tensor<1x4x4x8xf16>, tensor<1x4x4x4xf16>) {
  %w = stablehlo.constant dense<0.5> : tensor<3x3x4x8xf16>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
    (tensor<1x6x6x4xf16>, tensor<3x3x4x8xf16>) -> tensor<1x4x4x8xf16>
  %v = stablehlo.constant dense<0.25> : tensor<3x3x1x4xf16>
  %z = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 4 : i64} :
    (tensor<1x6x6x4xf16>, tensor<3x3x1x4xf16>) -> tensor<1x4x4x4xf16>
  return %y, %z : tensor<1x4x4x8xf16>, tensor<1x4x4x4xf16>
}
