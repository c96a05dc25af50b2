// A sort with is_stable changes the order of equal keys.
// cause: stablehlo.sort becomes iree_linalg_ext.sort, which has no attribute for is_stable. Its loops exchange
// cause: neighbours unless the comparison holds, also where they compare equal.
// fault: wrong
// input: 8xi32=2 1 2 0 1 2 0 1
// expected: 8xi32=0 0 1 1 1 2 2 2
// expected: 8xi32=3 6 1 4 7 0 2 5
func.func @main(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %r:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
      %p = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
  return %r#0, %r#1 : tensor<8xi32>, tensor<8xi32>
}
