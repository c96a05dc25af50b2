// RUN: hloforge opt %s --pass=decompose-scatter | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[ABOVE:%.+]] = stablehlo.compare GE
// CHECK: [[BELOW:%.+]] = stablehlo.compare LE
// CHECK: [[IN:%.+]] = stablehlo.and [[ABOVE]], [[BELOW]]
// CHECK: [[O:%.+]] = stablehlo.reshape %arg0 : (tensor<4x8x8xf32>) -> tensor<32x8xf32>
// CHECK: [[START:%.+]] = stablehlo.select [[IN]], {{%.+}}, {{%.+}} : tensor<5xi1>, tensor<5xi32>
// CHECK: [[WINDOWS:%.+]] = stablehlo.broadcast_in_dim [[IN]], dims = [0]
// CHECK: [[NEUTRAL:%.+]] = stablehlo.constant dense<-0.0
// CHECK: [[U1:%.+]] = stablehlo.select [[WINDOWS]], %arg2, [[NEUTRAL]]
// CHECK: stablehlo.constant dense<[0, 1, 8, 9, 16, 17, 24, 25]>
// CHECK: [[STARTS:%.+]] = stablehlo.broadcast_in_dim [[START]], dims = [0] : (tensor<5xi32>) -> tensor<5x8xi32>
// CHECK: stablehlo.add [[STARTS]]
// CHECK: [[U2:%.+]] = stablehlo.reshape [[U1]] : (tensor<5x4x2x8xf32>) -> tensor<40x8xf32>
// CHECK: [[ROWS:%.+]] = stablehlo.reshape {{%.+}} : (tensor<40xi32>) -> tensor<40x1xi32>
// CHECK: [[S:%.+]] = "stablehlo.scatter"([[O]], [[ROWS]], [[U2]])
// CHECK-SAME: inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]
// CHECK: stablehlo.add
// CHECK: {hloforge.in_bounds}
// CHECK: [[R:%.+]] = stablehlo.reshape [[S]] : (tensor<32x8xf32>) -> tensor<4x8x8xf32>
// CHECK: return [[R]]
func.func @main(%o: tensor<4x8x8xf32>, %i: tensor<5x1xi32>, %u: tensor<5x4x2x8xf32>) -> tensor<4x8x8xf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2, 3],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8x8xf32>, tensor<5x1xi32>, tensor<5x4x2x8xf32>) -> tensor<4x8x8xf32>
  return %r : tensor<4x8x8xf32>
}
