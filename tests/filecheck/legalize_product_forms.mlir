// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T:%.+]] = stablehlo.transpose %{{.+}}, dims = [1, 0, 2] : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
// CHECK: [[U:%.+]] = stablehlo.transpose %{{.+}}, dims = [1, 2, 0] : (tensor<5x6x3xf32>) -> tensor<6x3x5xf32>
// CHECK: stablehlo.dot_general [[T]], [[U]], contracting_dims = [1, 2] x [1, 2]
func.func @main(%x: tensor<3x4x5xf32>, %y: tensor<5x6x3xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [0, 2] x [2, 0] : (tensor<3x4x5xf32>, tensor<5x6x3xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @transposed
// CHECK: stablehlo.dot_general %{{.+}}, %{{.+}}, contracting_dims = [1] x [1] : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
func.func @transposed(%x: tensor<4x5xf32>, %w: tensor<6x5xf32>) -> tensor<4x6xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %r = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @transposed_in_a_loop
// CHECK: stablehlo.dot_general %{{.+}}, %{{.+}}, contracting_dims = [1] x [1] : (tensor<90x20xf32>, tensor<20x20xf32>) -> tensor<90x20xf32>
func.func @transposed_in_a_loop(%x: tensor<90x20xf32>, %w: tensor<20x20xf32>) -> tensor<90x20xf32> {
  %r = stablehlo.while(%y = %x) : tensor<90x20xf32>
    cond {
      %more = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<20x20xf32>) -> tensor<20x20xf32>
      %z = stablehlo.dot_general %y, %t, contracting_dims = [1] x [0] : (tensor<90x20xf32>, tensor<20x20xf32>) -> tensor<90x20xf32>
      stablehlo.return %z : tensor<90x20xf32>
    }
  return %r : tensor<90x20xf32>
}

// CHECK-LABEL: func.func @transposed_result
// CHECK: [[R:%.+]] = stablehlo.dot_general %{{.+}}, %{{.+}}, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x5xf32>, tensor<2x5x4xf32>) -> tensor<2x6x4xf32>
// CHECK-NEXT: return [[R]]
func.func @transposed_result(%x: tensor<2x5x4xf32>, %y: tensor<2x6x5xf32>) -> tensor<2x6x4xf32> {
  %r = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [2] : (tensor<2x5x4xf32>, tensor<2x6x5xf32>) -> tensor<2x4x6xf32>
  %t = stablehlo.transpose %r, dims = [0, 2, 1] : (tensor<2x4x6xf32>) -> tensor<2x6x4xf32>
  return %t : tensor<2x6x4xf32>
}

// A product of complex numbers has code; one by a small matrix is its terms.
// CHECK-LABEL: func.func @complex
// CHECK: stablehlo.dot_general %{{.+}}, %{{.+}}, contracting_dims = [1] x [0] : (tensor<4x50xcomplex<f32>>, tensor<50x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.complex %{{.+}} : tensor<90x2xcomplex<f32>>
func.func @complex(%x: tensor<4x50xcomplex<f32>>, %y: tensor<50x6xcomplex<f32>>, %z: tensor<90x2xcomplex<f32>>, %w: tensor<2x2xcomplex<f32>>)
    -> (tensor<4x6xcomplex<f32>>, tensor<90x2xcomplex<f32>>) {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x50xcomplex<f32>>, tensor<50x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
  %s = stablehlo.dot_general %z, %w, contracting_dims = [1] x [0] : (tensor<90x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>) -> tensor<90x2xcomplex<f32>>
  return %r, %s : tensor<4x6xcomplex<f32>>, tensor<90x2xcomplex<f32>>
}

// Weights that are kept as bytes, with a scale for each column.
// CHECK-LABEL: func.func @computed_of_transposed
// CHECK: [[F:%.+]] = stablehlo.convert %{{.+}} : (tensor<6x5xi8>) -> tensor<6x5xf32>
// CHECK: [[S:%.+]] = stablehlo.broadcast_in_dim %{{.+}}, dims = [0] : (tensor<6xf32>) -> tensor<6x5xf32>
// CHECK: [[W:%.+]] = stablehlo.multiply [[F]], [[S]] : tensor<6x5xf32>
// CHECK: stablehlo.dot_general %{{.+}}, [[W]], contracting_dims = [1] x [1] : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
func.func @computed_of_transposed(%x: tensor<4x5xf32>, %w: tensor<6x5xi8>, %s: tensor<6xf32>) -> tensor<4x6xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x5xi8>) -> tensor<5x6xi8>
  %f = stablehlo.convert %t : (tensor<5x6xi8>) -> tensor<5x6xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<6xf32>) -> tensor<5x6xf32>
  %m = stablehlo.multiply %f, %b : tensor<5x6xf32>
  %r = stablehlo.dot_general %x, %m, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// What others read as well stays as it is.
// CHECK-LABEL: func.func @shared
// CHECK: [[F:%.+]] = stablehlo.convert %{{.+}} : (tensor<5x6xi8>) -> tensor<5x6xf32>
// CHECK: stablehlo.dot_general %{{.+}}, [[F]], contracting_dims = [1] x [0]
func.func @shared(%x: tensor<4x5xf32>, %w: tensor<6x5xi8>) -> (tensor<4x6xf32>, tensor<5x6xf32>) {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x5xi8>) -> tensor<5x6xi8>
  %f = stablehlo.convert %t : (tensor<5x6xi8>) -> tensor<5x6xf32>
  %r = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %r, %f : tensor<4x6xf32>, tensor<5x6xf32>
}

// Matrices whose numbers lie between those of other matrices of the batch are read as they lie after a transposition.
// CHECK-LABEL: func.func @batch_last
// CHECK: %[[X:.+]] = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<16x7x8xf32>) -> tensor<8x16x7xf32>
// CHECK: %[[Y:.+]] = stablehlo.transpose %arg1, dims = [2, 0, 1] : (tensor<16x9x8xf32>) -> tensor<8x16x9xf32>
// CHECK: stablehlo.dot_general %[[X]], %[[Y]], batching_dims = [0] x [0], contracting_dims = [1] x [1]
// CHECK: return
func.func @batch_last(%x: tensor<16x7x8xf32>, %y: tensor<16x9x8xf32>) -> tensor<8x7x9xf32> {
  %r = stablehlo.dot_general %x, %y, batching_dims = [2] x [2], contracting_dims = [0] x [0]
    : (tensor<16x7x8xf32>, tensor<16x9x8xf32>) -> tensor<8x7x9xf32>
  return %r : tensor<8x7x9xf32>
}
