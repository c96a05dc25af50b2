// RUN: hloforge opt %s --pass=decompose-scatter | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[O:%.+]] = stablehlo.reshape %arg0
// CHECK: [[R:%.+]] = "stablehlo.scatter"([[O]], [[ROWS:%.+]], [[U1:%.+]]) {{.*}}inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]
// CHECK: hloforge.in_bounds
// CHECK: return {{%.+}} : tensor<4x8x8xf32>
func.func @main(%o: tensor<4x8x8xf32>, %i: tensor<5x1xi32>, %u: tensor<5x4x2x8xf32>) -> tensor<4x8x8xf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2, 3],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8x8xf32>, tensor<5x1xi32>, tensor<5x4x2x8xf32>) -> tensor<4x8x8xf32>
  return %r : tensor<4x8x8xf32>
}
