// RUN: hloforge opt %s --keep-marks --pass=dispatch-gathers | filecheck %s --implicit-check-not=stablehlo.gather --implicit-check-not=stablehlo.scatter

// The scatter is in the place of the table, which it is tied to; a row out of bounds has the number -1 and no turns.
// CHECK-LABEL: func.func @main
// CHECK: [[G:%.+]] = "flow.dispatch.workgroups"({{%.+}}, %arg0, %arg1) ({
// CHECK: scf.for
// CHECK: [[ROW:%.+]] = vector.transfer_read
// CHECK: vector.transfer_write [[ROW]]
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9].*}} tied_operands = [-1 : index]{{.*}} -> tensor<512x16xf32>
// CHECK: [[GOOD:%.+]] = stablehlo.reshape %arg3
// CHECK: [[NONE:%.+]] = stablehlo.constant dense<-1>
// CHECK: [[ROWS:%.+]] = stablehlo.select [[GOOD]], %arg1, [[NONE]]
// CHECK: [[S:%.+]] = "flow.dispatch.workgroups"({{%.+}}, %arg0, [[ROWS]], %arg2) ({
// CHECK: scf.for
// CHECK: [[OUT:%.+]] = arith.cmpi slt
// CHECK: [[END:%.+]] = arith.select [[OUT]]
// CHECK: scf.for {{%.+}} = {{%.+}} to [[END]]
// CHECK: [[SUM:%.+]] = arith.addf
// CHECK: vector.transfer_write [[SUM]]
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[0-9].*}} tied_operands = [0 : index]{{.*}} -> tensor<700x16xf32>
// CHECK: return [[G]], [[S]]
func.func @main(%table: tensor<700x16xf32>, %rows: tensor<512x1xi32>, %updates: tensor<512x16xf32>,
    %good: tensor<512xi1>) -> (tensor<512x16xf32>, tensor<700x16xf32>) {
  %g = "stablehlo.gather"(%table, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}>
    {hloforge.in_bounds} : (tensor<700x16xf32>, tensor<512x1xi32>) -> tensor<512x16xf32>
  %zero = stablehlo.constant dense<-0.0> : tensor<512x16xf32>
  %spread = stablehlo.broadcast_in_dim %good, dims = [0] : (tensor<512xi1>) -> tensor<512x16xi1>
  %chosen = stablehlo.select %spread, %updates, %zero : tensor<512x16xi1>, tensor<512x16xf32>
  %s = "stablehlo.scatter"(%table, %rows, %chosen) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) {hloforge.in_bounds} : (tensor<700x16xf32>, tensor<512x1xi32>, tensor<512x16xf32>) -> tensor<700x16xf32>
  return %g, %s : tensor<512x16xf32>, tensor<700x16xf32>
}
