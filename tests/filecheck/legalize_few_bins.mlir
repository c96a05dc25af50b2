// RUN: hloforge opt %s --pass=legalize-few-bins | filecheck %s

// Counts of two kinds: what each is given, and added up.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.scatter
// CHECK: stablehlo.iota dim = 0 : tensor<2x99xi32>
// CHECK: %[[MINE:.+]] = stablehlo.compare EQ, %{{.+}}, %{{.+}} : (tensor<2x99xi32>, tensor<2x99xi32>) -> tensor<2x99xi1>
// CHECK: %[[GIVEN:.+]] = stablehlo.select %[[MINE]], %{{.+}}, %{{.+}} : tensor<2x99xi1>, tensor<2x99xi32>
// CHECK: %[[SUM:.+]] = stablehlo.reduce(%[[GIVEN]] init: %{{.+}}) applies stablehlo.add across dimensions = [1]
// CHECK: stablehlo.add %{{.+}}, %[[SUM]] : tensor<2xi32>
func.func @main(%x: tensor<2xi32>, %i: tensor<99x1xi32>, %u: tensor<99xi32>) -> tensor<2xi32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
  }) : (tensor<2xi32>, tensor<99x1xi32>, tensor<99xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}

// The last one of those that are put into an element stays there: their order decides.
// CHECK-LABEL: func.func @ordered
// CHECK: stablehlo.scatter
func.func @ordered(%x: tensor<2xi32>, %i: tensor<99x1xi32>, %u: tensor<99xi32>) -> tensor<2xi32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      stablehlo.return %b : tensor<i32>
  }) : (tensor<2xi32>, tensor<99x1xi32>, tensor<99xi32>) -> tensor<2xi32>
  return %r : tensor<2xi32>
}
