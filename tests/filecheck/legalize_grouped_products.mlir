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

// Terms that follow each other in the matrices of an argument stay where they are; 16 bits are added in 32.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[ROWS:.+]] = stablehlo.convert %{{.+}} : (tensor<6x8xbf16>) -> tensor<6x8xf32>
// CHECK: stablehlo.custom_call @hloforge.grouped_product(%[[ROWS]], %arg1, %arg2)
// CHECK-SAME: transposed = true
// CHECK: stablehlo.convert %{{.+}} : (tensor<6x32xf32>) -> tensor<6x32xbf16>
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
