// RUN: hloforge opt %s --pass=clamp-gather-indices | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[ZERO:%.+]] = stablehlo.constant dense<0> : tensor<{{.*}}i32>
// CHECK-DAG: [[MOST:%.+]] = stablehlo.constant dense<99> : tensor<{{.*}}i32>
// CHECK: [[J:%.+]] = stablehlo.clamp [[ZERO]], %arg1, [[MOST]]
// CHECK: [[R:%.+]] = "stablehlo.gather"(%arg0, [[J]]) {{.*}}hloforge.in_bounds
// CHECK: return [[R]]
func.func @main(%x: tensor<100x8xf32>, %i: tensor<5x1xi32>) -> tensor<5x8xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}>
    : (tensor<100x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}
