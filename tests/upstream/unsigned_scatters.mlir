// A scatter of unsigned integers in a loop is refused.
// cause: The conversion from StableHLO makes the loop's carries signless, and the scatter keeps the signed types of its
// cause: operands: casts between the two remain. Outside of loops such scatters compile.
// fault: compile-error "unresolved materialization"
func.func @main(%x: tensor<4x3xui32>, %u: tensor<1x3xui32>, %last: tensor<i32>) -> tensor<4x3xui32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%n = %zero, %c = %x) : tensor<i32>, tensor<4x3xui32>
  cond {
    %b = stablehlo.compare LT, %n, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %b : tensor<i1>
  } do {
    %at = stablehlo.reshape %n : (tensor<i32>) -> tensor<1x1xi32>
    %s = "stablehlo.scatter"(%c, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%o: tensor<ui32>, %v: tensor<ui32>):
      stablehlo.return %v : tensor<ui32>
    }) : (tensor<4x3xui32>, tensor<1x1xi32>, tensor<1x3xui32>) -> tensor<4x3xui32>
    %m = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %m, %s : tensor<i32>, tensor<4x3xui32>
  }
  return %r#1 : tensor<4x3xui32>
}
