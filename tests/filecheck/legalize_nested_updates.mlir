// RUN: hloforge opt %s --pass=legalize-nested-updates | filecheck %s

// A row of a part of a cache, as select, index_copy and select_scatter of PyTorch write it.
// CHECK-LABEL: func.func @main
// CHECK: %[[AT:.+]] = stablehlo.constant dense<1> : tensor<1x1xi64>
// CHECK: %[[PLACES:.+]] = stablehlo.concatenate %[[AT]], %arg1, dim = 1 : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x2xi64>
// CHECK: %[[NEW:.+]] = "stablehlo.scatter"(%arg0, %[[PLACES]], %arg2) <{{.*}}update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1
// CHECK-NOT: stablehlo.dynamic_update_slice
// CHECK: return %[[NEW]]
func.func @main(%cache: tensor<3x4x8xf32>, %place: tensor<1x1xi64>, %row: tensor<1x8xf32>) -> tensor<3x4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %old = stablehlo.slice %cache [1:2, 0:4, 0:8] : (tensor<3x4x8xf32>) -> tensor<1x4x8xf32>
  %x = stablehlo.reshape %old : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
  %y = "stablehlo.scatter"(%x, %place, %row) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%before: tensor<f32>, %after: tensor<f32>):
      stablehlo.return %after : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<1x1xi64>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %new = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %r = stablehlo.dynamic_update_slice %cache, %new, %one, %zero, %zero : (tensor<3x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x8xf32>
  return %r : tensor<3x4x8xf32>
}

// Some rows at a place that is computed.
// CHECK-LABEL: func.func @rows
// CHECK: %[[PART:.+]] = stablehlo.reshape %arg2 : (tensor<2x8xf32>) -> tensor<1x2x8xf32>
// CHECK: stablehlo.dynamic_update_slice %arg0, %[[PART]], %{{.+}}, %arg1, %{{.+}} : (tensor<3x4x8xf32>, tensor<1x2x8xf32>
// CHECK-NOT: stablehlo.dynamic_update_slice
// CHECK: return
func.func @rows(%cache: tensor<3x4x8xf32>, %place: tensor<i32>, %rows: tensor<2x8xf32>) -> tensor<3x4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %old = stablehlo.slice %cache [2:3, 0:4, 0:8] : (tensor<3x4x8xf32>) -> tensor<1x4x8xf32>
  %x = stablehlo.reshape %old : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
  %y = stablehlo.dynamic_update_slice %x, %rows, %place, %zero : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %new = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %r = stablehlo.dynamic_update_slice %cache, %new, %two, %zero, %zero : (tensor<3x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x8xf32>
  return %r : tensor<3x4x8xf32>
}

// It goes to another place than it came from.
// CHECK-LABEL: func.func @elsewhere
// CHECK: stablehlo.dynamic_update_slice %{{.+}} : (tensor<4x8xf32>, tensor<2x8xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.+}} : (tensor<3x4x8xf32>, tensor<1x4x8xf32>
func.func @elsewhere(%cache: tensor<3x4x8xf32>, %place: tensor<i32>, %rows: tensor<2x8xf32>) -> tensor<3x4x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %old = stablehlo.slice %cache [2:3, 0:4, 0:8] : (tensor<3x4x8xf32>) -> tensor<1x4x8xf32>
  %x = stablehlo.reshape %old : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
  %y = stablehlo.dynamic_update_slice %x, %rows, %place, %zero : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %new = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %r = stablehlo.dynamic_update_slice %cache, %new, %one, %zero, %zero : (tensor<3x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x8xf32>
  return %r : tensor<3x4x8xf32>
}
