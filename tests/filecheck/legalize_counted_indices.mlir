// RUN: hloforge opt %s --pass=legalize-counted-indices | filecheck %s

// Rows whose elements are named one by one: the column counts, behind the test of negative numbers.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.slice %{{.+}} [0:900, 0:1, 0:1] : (tensor<900x64x1xi32>) -> tensor<900x1x1xi32>
// CHECK: stablehlo.scatter{{.+}}update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1
// CHECK: (tensor<200x64xf32>, tensor<900x1xi32>, tensor<900x64xf32>) -> tensor<200x64xf32>
func.func @main(%x: tensor<200x64xf32>, %rows: tensor<900xi32>, %u: tensor<900x64xf32>) -> tensor<200x64xf32> {
  %r = stablehlo.broadcast_in_dim %rows, dims = [0] : (tensor<900xi32>) -> tensor<900x64x1xi32>
  %n = stablehlo.iota dim = 0 : tensor<64xi32>
  %zero = stablehlo.constant dense<0> : tensor<64xi32>
  %size = stablehlo.constant dense<64> : tensor<64xi32>
  %is_negative = stablehlo.compare LT, %n, %zero : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
  %wrapped = stablehlo.add %n, %size : tensor<64xi32>
  %k = stablehlo.select %is_negative, %wrapped, %n : tensor<64xi1>, tensor<64xi32>
  %c = stablehlo.broadcast_in_dim %k, dims = [1] : (tensor<64xi32>) -> tensor<900x64x1xi32>
  %i = stablehlo.concatenate %r, %c, dim = 2 : (tensor<900x64x1xi32>, tensor<900x64x1xi32>) -> tensor<900x64x2xi32>
  %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<200x64xf32>, tensor<900x64x2xi32>, tensor<900x64xf32>) -> tensor<200x64xf32>
  return %s : tensor<200x64xf32>
}

// The row varies along what the column counts.
// CHECK-LABEL: func.func @apart
// CHECK: stablehlo.scatter{{.+}}<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2
func.func @apart(%x: tensor<200x64xf32>, %rows: tensor<900x64xi32>, %u: tensor<900x64xf32>) -> tensor<200x64xf32> {
  %r = stablehlo.reshape %rows : (tensor<900x64xi32>) -> tensor<900x64x1xi32>
  %c = stablehlo.iota dim = 1 : tensor<900x64x1xi32>
  %i = stablehlo.concatenate %r, %c, dim = 2 : (tensor<900x64x1xi32>, tensor<900x64x1xi32>) -> tensor<900x64x2xi32>
  %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<200x64xf32>, tensor<900x64x2xi32>, tensor<900x64xf32>) -> tensor<200x64xf32>
  return %s : tensor<200x64xf32>
}

// More columns are named than there are: those behind the array are left out one by one.
// CHECK-LABEL: func.func @beside
// CHECK: stablehlo.scatter{{.+}}<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2
func.func @beside(%x: tensor<200x63xf32>, %rows: tensor<900xi32>, %u: tensor<900x64xf32>) -> tensor<200x63xf32> {
  %r = stablehlo.broadcast_in_dim %rows, dims = [0] : (tensor<900xi32>) -> tensor<900x64x1xi32>
  %c = stablehlo.iota dim = 1 : tensor<900x64x1xi32>
  %i = stablehlo.concatenate %r, %c, dim = 2 : (tensor<900x64x1xi32>, tensor<900x64x1xi32>) -> tensor<900x64x2xi32>
  %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<200x63xf32>, tensor<900x64x2xi32>, tensor<900x64xf32>) -> tensor<200x63xf32>
  return %s : tensor<200x63xf32>
}
