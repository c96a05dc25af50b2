// An update writes into the caller's array, which is returned too.
// fault: wrong
// input: 4xf32=1 2 3 4
// expected: 4xf32=1 2 3 4
// expected: 4xf32=9 2 3 4
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %part = stablehlo.constant dense<9.0> : tensor<1xf32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %u = stablehlo.dynamic_update_slice %x, %part, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
  return %x, %u : tensor<4xf32>, tensor<4xf32>
}
