// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.slice %{{.+}} [0:90000, 2:3]
// CHECK: stablehlo.broadcast_in_dim %{{.+}}, dims = [0] : (tensor<90000xf32>) -> tensor<90000x3xf32>
// CHECK: stablehlo.slice %{{.+}} [2:3, 0:3]
// CHECK: stablehlo.broadcast_in_dim %{{.+}}, dims = [1] : (tensor<3xf32>) -> tensor<90000x3xf32>
// CHECK: stablehlo.multiply
// CHECK: stablehlo.add
// CHECK-NOT: stablehlo.dot_general
func.func @main(%x: tensor<90000x3xf32>, %w: tensor<3x3xf32>) -> tensor<90000x3xf32> {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<90000x3xf32>, tensor<3x3xf32>) -> tensor<90000x3xf32>
  return %r : tensor<90000x3xf32>
}

// A vector by a matrix, many times.
// CHECK-LABEL: func.func @rotations
// CHECK-NOT: stablehlo.dot_general
// CHECK: return
func.func @rotations(%x: tensor<700x3x3xf32>, %w: tensor<700x3xf32>) -> tensor<700x3xf32> {
  %r = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<700x3x3xf32>, tensor<700x3xf32>) -> tensor<700x3xf32>
  return %r : tensor<700x3xf32>
}

// Rows by few columns.
// CHECK-LABEL: func.func @rows
// CHECK: stablehlo.slice %{{.+}} [0:300, 15:16]
// CHECK-NOT: stablehlo.dot_general
func.func @rows(%x: tensor<300x16xf64>, %w: tensor<16x8xf64>) -> tensor<300x8xf64> {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<300x16xf64>, tensor<16x8xf64>) -> tensor<300x8xf64>
  return %r : tensor<300x8xf64>
}

// Too small for a kernel: a sum of seven terms, 3x3 by 3x3.
// CHECK-LABEL: func.func @tiny
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.slice %{{.+}} [6:7]
// CHECK: stablehlo.slice %{{.+}} [0:3, 2:3]
// CHECK-NOT: stablehlo.dot_general
func.func @tiny(%x: tensor<7xf32>, %y: tensor<3x3xf64>) -> (tensor<f32>, tensor<3x3xf64>) {
  %r = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<7xf32>, tensor<7xf32>) -> tensor<f32>
  %s = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0]
    : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %r, %s : tensor<f32>, tensor<3x3xf64>
}

// A vector of the processor holds the terms.
// CHECK-LABEL: func.func @terms_of_a_vector
// CHECK: stablehlo.dot_general
func.func @terms_of_a_vector(%x: tensor<700x8x8xf64>, %w: tensor<700x8xf64>) -> tensor<700x8xf64> {
  %r = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<700x8x8xf64>, tensor<700x8xf64>) -> tensor<700x8xf64>
  return %r : tensor<700x8xf64>
}

// bf16 is rounded once for all terms.
// CHECK-LABEL: func.func @rounded
// CHECK: stablehlo.dot_general
func.func @rounded(%x: tensor<900x3xbf16>, %w: tensor<3x3xbf16>) -> tensor<900x3xbf16> {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<900x3xbf16>, tensor<3x3xbf16>) -> tensor<900x3xbf16>
  return %r : tensor<900x3xbf16>
}

// Few rows, and matrices whose products are many numbers, have kernels.
// CHECK-LABEL: func.func @few
// CHECK-COUNT-2: stablehlo.dot_general
func.func @few(%x: tensor<9x3xf32>, %y: tensor<900x3x3xf32>, %w: tensor<3x3xf32>)
    -> (tensor<9x3xf32>, tensor<900x3x3xf32>) {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<9x3xf32>, tensor<3x3xf32>) -> tensor<9x3xf32>
  %s = stablehlo.dot_general %y, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<900x3x3xf32>, tensor<900x3x3xf32>) -> tensor<900x3x3xf32>
  return %r, %s : tensor<9x3xf32>, tensor<900x3x3xf32>
}

// Few terms of long rows: an outer product.
// CHECK-LABEL: func.func @outer
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.broadcast_in_dim %{{.+}}, dims = [0] : (tensor<9xf32>) -> tensor<9x50xf32>
// CHECK-NOT: stablehlo.dot_general
func.func @outer(%x: tensor<9xf32>, %y: tensor<50xf32>) -> tensor<9x50xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<9xf32>, tensor<50xf32>) -> tensor<9x50xf32>
  return %r : tensor<9x50xf32>
}
