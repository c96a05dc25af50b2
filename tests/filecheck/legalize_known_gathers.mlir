// RUN: hloforge opt %s --pass=legalize-known-gathers | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.gather
// CHECK: %[[BOTH:.+]] = stablehlo.broadcast_in_dim %{{.+}}, dims = [0, 1] : (tensor<8x3xf32>) -> tensor<8x3x2xf32>
// CHECK: stablehlo.reshape %[[BOTH]] : (tensor<8x3x2xf32>) -> tensor<8x6xf32>
func.func @main(%x: tensor<8x3xf32>) -> tensor<8x6xf32> {
  %i = stablehlo.constant dense<[[0], [0], [1], [1], [2], [2]]> : tensor<6x1xi32>
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 8, 1>}> : (tensor<8x3xf32>, tensor<6x1xi32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// The last index is clamped.
// CHECK-LABEL: func.func @backwards
// CHECK: %[[PART:.+]] = stablehlo.slice %arg0 [0:5:2, 0:9]
// CHECK: stablehlo.reverse %[[PART]], dims = [0]
func.func @backwards(%x: tensor<5x9xf32>) -> tensor<3x9xf32> {
  %i = stablehlo.constant dense<[7, 2, -3]> : tensor<3xi32>
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 9>}> : (tensor<5x9xf32>, tensor<3xi32>) -> tensor<3x9xf32>
  return %r : tensor<3x9xf32>
}

// Steps that differ, repeated rows that are long, and indices that are not known.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-3: stablehlo.gather
func.func @kept(%x: tensor<5x99xf32>, %j: tensor<4xi32>) -> (tensor<4x99xf32>, tensor<4x99xf32>, tensor<4x99xf32>) {
  %i = stablehlo.constant dense<[0, 1, 1, 2]> : tensor<4xi32>
  %k = stablehlo.constant dense<[0, 0, 1, 1]> : tensor<4xi32>
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 99>}> : (tensor<5x99xf32>, tensor<4xi32>) -> tensor<4x99xf32>
  %s = "stablehlo.gather"(%x, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 99>}> : (tensor<5x99xf32>, tensor<4xi32>) -> tensor<4x99xf32>
  %t = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 99>}> : (tensor<5x99xf32>, tensor<4xi32>) -> tensor<4x99xf32>
  return %r, %s, %t : tensor<4x99xf32>, tensor<4x99xf32>, tensor<4x99xf32>
}
