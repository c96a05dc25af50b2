// RUN: hloforge opt %s --pass=legalize-grouped-products | filecheck %s

// As JAX expands ragged products: each row has the matrices of the groups that hold its number.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.iota dim = 1 : tensor<4x6xi32>
// CHECK: %[[MINE:.+]] = stablehlo.compare LT, %{{.+}}, %{{.+}} : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
// CHECK: stablehlo.custom_call @hloforge.grouped_product(%{{.+}}, %arg1, %[[MINE]])
// CHECK-SAME: transposed = false
// CHECK-SAME: (tensor<6x8xf32>, tensor<4x8x32xf32>, tensor<4x6xi1>) -> tensor<6x32xf32>
// CHECK-NOT: stablehlo.dot_general
func.func @main(%x: tensor<6x8xf32>, %w: tensor<4x8x32xf32>, %ends: tensor<4xi32>) -> tensor<6x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4x6x8xf32>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %i = stablehlo.iota dim = 1 : tensor<4x6x8xi32>
  %e = stablehlo.broadcast_in_dim %ends, dims = [0] : (tensor<4xi32>) -> tensor<4x6x8xi32>
  %m = stablehlo.compare LT, %i, %e : (tensor<4x6x8xi32>, tensor<4x6x8xi32>) -> tensor<4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xf32>
  %r = stablehlo.dot_general %s, %w, contracting_dims = [2, 0] x [1, 0]
    : (tensor<4x6x8xf32>, tensor<4x8x32xf32>) -> tensor<6x32xf32>
  return %r : tensor<6x32xf32>
}

// Terms that follow each other in the matrices of an argument stay where they are; the kernel adds 16 bits in 32.
// CHECK-LABEL: func.func @transposed
// CHECK: stablehlo.custom_call @hloforge.grouped_product(%arg0, %arg1, %arg2)
// CHECK-SAME: transposed = true
// CHECK-SAME: (tensor<6x8xbf16>, tensor<4x32x8xbf16>, tensor<4x6xi1>) -> tensor<6x32xbf16>
func.func @transposed(%x: tensor<6x8xbf16>, %w: tensor<4x32x8xbf16>, %mine: tensor<4x6xi1>) -> tensor<6x32xbf16> {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %zero = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<bf16>) -> tensor<4x6x8xbf16>
  %t = stablehlo.transpose %w, dims = [0, 2, 1] : (tensor<4x32x8xbf16>) -> tensor<4x8x32xbf16>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xbf16>) -> tensor<4x6x8xbf16>
  %m = stablehlo.broadcast_in_dim %mine, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xbf16>
  %r = stablehlo.dot_general %s, %t, contracting_dims = [0, 2] x [0, 1]
    : (tensor<4x6x8xbf16>, tensor<4x8x32xbf16>) -> tensor<6x32xbf16>
  return %r : tensor<6x32xbf16>
}

// Sums that are rounded wherever they are read are rounded by the kernel.
// CHECK-LABEL: func.func @rounded
// CHECK: stablehlo.custom_call @hloforge.grouped_product(%arg0, %arg1, %arg2)
// CHECK-SAME: (tensor<6x8xbf16>, tensor<4x8x32xbf16>, tensor<4x6xi1>) -> tensor<6x32xbf16>
func.func @rounded(%x: tensor<6x8xbf16>, %w: tensor<4x8x32xbf16>, %mine: tensor<4x6xi1>) -> tensor<6x32xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<4x6x8xbf16>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xbf16>) -> tensor<4x6x8xbf16>
  %m = stablehlo.broadcast_in_dim %mine, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xbf16>
  %f = stablehlo.dot_general %s, %w, contracting_dims = [2, 0] x [1, 0]
    : (tensor<4x6x8xbf16>, tensor<4x8x32xbf16>) -> tensor<6x32xf32>
  %r = stablehlo.convert %f : (tensor<6x32xf32>) -> tensor<6x32xbf16>
  return %r : tensor<6x32xbf16>
}

// A mask of terms, as of dropout, says nothing about rows.
// CHECK-LABEL: func.func @of_terms
// CHECK: stablehlo.dot_general
func.func @of_terms(%x: tensor<6x8xf32>, %w: tensor<4x8x32xf32>, %m: tensor<4x6x8xi1>) -> tensor<6x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4x6x8xf32>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xf32>
  %r = stablehlo.dot_general %s, %w, contracting_dims = [2, 0] x [1, 0]
    : (tensor<4x6x8xf32>, tensor<4x8x32xf32>) -> tensor<6x32xf32>
  return %r : tensor<6x32xf32>
}

// Sums of another type than the factors' own are not what the kernel adds.
// CHECK-LABEL: func.func @wider_sums
// CHECK: stablehlo.dot_general
func.func @wider_sums(%x: tensor<6x8xf32>, %w: tensor<4x8x32xf32>, %mine: tensor<4x6xi1>) -> tensor<6x32xf64> {
  %zero = stablehlo.constant dense<0.0> : tensor<4x6x8xf32>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %m = stablehlo.broadcast_in_dim %mine, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xf32>
  %r = stablehlo.dot_general %s, %w, contracting_dims = [2, 0] x [1, 0]
    : (tensor<4x6x8xf32>, tensor<4x8x32xf32>) -> tensor<6x32xf64>
  return %r : tensor<6x32xf64>
}

// The gradient of experts in JAX: both factors are masked, groups are a batch.
// CHECK-LABEL: func.func @over_rows
// CHECK: %[[BOTH:.+]] = stablehlo.and %arg2, %arg3 : tensor<4x6xi1>
// CHECK: stablehlo.custom_call @hloforge.grouped_contraction(%arg0, %arg1, %[[BOTH]])
// CHECK-SAME: (tensor<6x8xf32>, tensor<6x5xf32>, tensor<4x6xi1>) -> tensor<4x8x5xf32>
// CHECK-NOT: stablehlo.dot_general
func.func @over_rows(%x: tensor<6x8xf32>, %dy: tensor<6x5xf32>, %a: tensor<4x6xi1>, %b: tensor<4x6xi1>)
    -> tensor<4x8x5xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4x6x8xf32>
  %zeros = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4x6x5xf32>
  %x4 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %dy4 = stablehlo.broadcast_in_dim %dy, dims = [1, 2] : (tensor<6x5xf32>) -> tensor<4x6x5xf32>
  %a3 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x8xi1>
  %b3 = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x5xi1>
  %l = stablehlo.select %a3, %x4, %zero : tensor<4x6x8xi1>, tensor<4x6x8xf32>
  %r = stablehlo.select %b3, %dy4, %zeros : tensor<4x6x5xi1>, tensor<4x6x5xf32>
  %g = stablehlo.dot_general %l, %r, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<4x6x8xf32>, tensor<4x6x5xf32>) -> tensor<4x8x5xf32>
  return %g : tensor<4x8x5xf32>
}

// One factor is masked, behind a transpose, and groups are between the result's dimensions.
// CHECK-LABEL: func.func @one_masked
// CHECK: %[[CALL:.+]] = stablehlo.custom_call @hloforge.grouped_contraction(%arg1, %arg0, %arg2)
// CHECK-SAME: (tensor<6x5xbf16>, tensor<6x8xbf16>, tensor<4x6xi1>) -> tensor<4x5x8xbf16>
// CHECK: stablehlo.transpose %[[CALL]], dims = [1, 0, 2] : (tensor<4x5x8xbf16>) -> tensor<5x4x8xbf16>
// CHECK-NOT: stablehlo.dot_general
func.func @one_masked(%x: tensor<6x8xbf16>, %dy: tensor<6x5xbf16>, %mine: tensor<4x6xi1>) -> tensor<5x4x8xbf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<4x6x8xbf16>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xbf16>) -> tensor<4x6x8xbf16>
  %m = stablehlo.broadcast_in_dim %mine, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xbf16>
  %t = stablehlo.transpose %s, dims = [1, 0, 2] : (tensor<4x6x8xbf16>) -> tensor<6x4x8xbf16>
  %r = stablehlo.dot_general %dy, %t, contracting_dims = [0] x [0]
    : (tensor<6x5xbf16>, tensor<6x4x8xbf16>) -> tensor<5x4x8xbf16>
  return %r : tensor<5x4x8xbf16>
}

// Batches of products of rows, as vmap makes them.
// CHECK-LABEL: func.func @batches
// CHECK: stablehlo.custom_call @hloforge.grouped_product(%arg0, %arg1, %arg2)
// CHECK-SAME: (tensor<3x6x8xf32>, tensor<3x4x8x32xf32>, tensor<3x4x6xi1>) -> tensor<3x6x32xf32>
func.func @batches(%x: tensor<3x6x8xf32>, %w: tensor<3x4x8x32xf32>, %mine: tensor<3x4x6xi1>) -> tensor<3x6x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<3x4x6x8xf32>
  %b = stablehlo.broadcast_in_dim %x, dims = [0, 2, 3] : (tensor<3x6x8xf32>) -> tensor<3x4x6x8xf32>
  %m = stablehlo.broadcast_in_dim %mine, dims = [0, 1, 2] : (tensor<3x4x6xi1>) -> tensor<3x4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<3x4x6x8xi1>, tensor<3x4x6x8xf32>
  %r = stablehlo.dot_general %s, %w, batching_dims = [0] x [0], contracting_dims = [3, 1] x [2, 1]
    : (tensor<3x4x6x8xf32>, tensor<3x4x8x32xf32>) -> tensor<3x6x32xf32>
  return %r : tensor<3x6x32xf32>
}

// A mask that is the same for all groups, as of padded rows, says nothing about groups.
// CHECK-LABEL: func.func @padded
// CHECK: stablehlo.dot_general
func.func @padded(%x: tensor<6x8xf32>, %dy: tensor<6x5xf32>, %valid: tensor<6xi1>) -> tensor<4x8x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4x6x8xf32>
  %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %m = stablehlo.broadcast_in_dim %valid, dims = [1] : (tensor<6xi1>) -> tensor<4x6x8xi1>
  %s = stablehlo.select %m, %b, %zero : tensor<4x6x8xi1>, tensor<4x6x8xf32>
  %r = stablehlo.dot_general %s, %dy, contracting_dims = [1] x [0]
    : (tensor<4x6x8xf32>, tensor<6x5xf32>) -> tensor<4x8x5xf32>
  return %r : tensor<4x8x5xf32>
}
