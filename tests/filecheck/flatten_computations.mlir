// RUN: hloforge opt %s --pass=flatten-computations | filecheck %s --implicit-check-not=stablehlo.if --implicit-check-not=stablehlo.case

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce
// CHECK: reducer(%[[A:.+]]: tensor<i32>, %[[B:.+]]: tensor<i32>)
// CHECK: %[[G:.+]] = stablehlo.compare GT, %[[A]], %[[B]]
// CHECK: stablehlo.select %[[G]], %[[A]], %[[B]]
// An index of no branch takes the last one.
// CHECK: "stablehlo.scatter"
// CHECK: stablehlo.minimum
// CHECK: stablehlo.maximum
// CHECK: stablehlo.compare EQ
// CHECK: stablehlo.select
func.func @main(%x: tensor<4xi32>, %i: tensor<2x1xi32>, %u: tensor<2xi32>) -> (tensor<i32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.reduce(%x init: %zero) across dimensions = [0] : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
    reducer(%a: tensor<i32>, %b: tensor<i32>) {
      %g = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %m = "stablehlo.if"(%g) ({ stablehlo.return %a : tensor<i32> }, { stablehlo.return %b : tensor<i32> }) : (tensor<i1>) -> tensor<i32>
      stablehlo.return %m : tensor<i32>
    }
  %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %m = "stablehlo.case"(%a) ({
        %n = stablehlo.minimum %a, %b : tensor<i32>
        stablehlo.return %n : tensor<i32>
      }, {
        %n = stablehlo.maximum %a, %b : tensor<i32>
        stablehlo.return %n : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      stablehlo.return %m : tensor<i32>
    }) : (tensor<4xi32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<4xi32>
  return %r, %s : tensor<i32>, tensor<4xi32>
}
