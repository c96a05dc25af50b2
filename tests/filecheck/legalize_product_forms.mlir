// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T:%.+]] = stablehlo.transpose %{{.+}}, dims = [1, 0, 2] : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
// CHECK: [[U:%.+]] = stablehlo.transpose %{{.+}}, dims = [1, 2, 0] : (tensor<5x6x3xf32>) -> tensor<6x3x5xf32>
// CHECK: stablehlo.dot_general [[T]], [[U]], contracting_dims = [1, 2] x [1, 2]
func.func @main(%x: tensor<3x4x5xf32>, %y: tensor<5x6x3xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [0, 2] x [2, 0] : (tensor<3x4x5xf32>, tensor<5x6x3xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @few_rows
// CHECK: stablehlo.dot_general %{{.+}}, %{{.+}}, contracting_dims = [1] x [1] : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
func.func @few_rows(%x: tensor<4x5xf32>, %w: tensor<6x5xf32>) -> tensor<4x6xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %r = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
