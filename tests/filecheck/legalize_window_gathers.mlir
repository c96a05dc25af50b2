// RUN: hloforge opt %s --pass=legalize-window-gathers | filecheck %s

// Rows whose elements are named one by one: the column counts, and the row is made of an array without columns.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.add {{.+}} : tensor<900x1x1xi32>
// CHECK: stablehlo.gather{{.+}}offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
// CHECK-SAME: slice_sizes = array<i64: 1, 64>
// CHECK-SAME: (tensor<200x70xf32>, tensor<900x1xi32>) -> tensor<900x64xf32>
func.func @main(%x: tensor<200x70xf32>, %rows: tensor<900xi32>) -> tensor<900x64xf32> {
  %r = stablehlo.broadcast_in_dim %rows, dims = [0] : (tensor<900xi32>) -> tensor<900x64x1xi32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<i32>) -> tensor<900x64x1xi32>
  %next = stablehlo.add %r, %ones : tensor<900x64x1xi32>
  %c = stablehlo.iota dim = 1 : tensor<900x64x1xi32>
  %i = stablehlo.concatenate %next, %c, dim = 2 : (tensor<900x64x1xi32>, tensor<900x64x1xi32>) -> tensor<900x64x2xi32>
  %g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<200x70xf32>, tensor<900x64x2xi32>) -> tensor<900x64xf32>
  return %g : tensor<900x64xf32>
}

// A batch along which the indices are the same is the window's; the other one stays.
// CHECK-LABEL: func.func @batches
// CHECK: stablehlo.gather{{.+}}offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0]
// CHECK-SAME: start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>
// CHECK-SAME: slice_sizes = array<i64: 1, 1, 16>
func.func @batches(%x: tensor<8x60x16xf32>, %rows: tensor<8x25xi32>) -> tensor<8x25x16xf32> {
  %i = stablehlo.broadcast_in_dim %rows, dims = [0, 1] : (tensor<8x25xi32>) -> tensor<8x25x16x1xi32>
  %g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
    operand_batching_dims = [0, 2], start_indices_batching_dims = [0, 2], start_index_map = [1],
    index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>}>
    : (tensor<8x60x16xf32>, tensor<8x25x16x1xi32>) -> tensor<8x25x16xf32>
  return %g : tensor<8x25x16xf32>
}

// The row varies along what the column counts; and a loop over the window would be around others.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-2: slice_sizes = array<i64: 1, 1>
func.func @apart(%x: tensor<200x70xf32>, %rows: tensor<90x64xi32>, %few: tensor<90xi32>) -> (tensor<90x64xf32>, tensor<70x90x90xf32>) {
  %r = stablehlo.reshape %rows : (tensor<90x64xi32>) -> tensor<90x64x1xi32>
  %c = stablehlo.iota dim = 1 : tensor<90x64x1xi32>
  %i = stablehlo.concatenate %r, %c, dim = 2 : (tensor<90x64x1xi32>, tensor<90x64x1xi32>) -> tensor<90x64x2xi32>
  %g = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<200x70xf32>, tensor<90x64x2xi32>) -> tensor<90x64xf32>
  %s = stablehlo.broadcast_in_dim %few, dims = [2] : (tensor<90xi32>) -> tensor<70x90x90x1xi32>
  %n = stablehlo.iota dim = 1 : tensor<70x90x90x1xi32>
  %m = stablehlo.iota dim = 0 : tensor<70x90x90x1xi32>
  %t = stablehlo.add %s, %n : tensor<70x90x90x1xi32>
  %j = stablehlo.concatenate %t, %m, dim = 3 : (tensor<70x90x90x1xi32>, tensor<70x90x90x1xi32>) -> tensor<70x90x90x2xi32>
  %h = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<200x70xf32>, tensor<70x90x90x2xi32>) -> tensor<70x90x90xf32>
  return %g, %h : tensor<90x64xf32>, tensor<70x90x90xf32>
}
