// An update overwrites an array that is read by another name.
// cause: Copy-on-write inserts a copy before the update, and the elision of copies (iree-stream-elide-async-copies)
// cause: takes it away again, because it does not see that a view of the array is read later. A select in place of
// cause: the copy, whose condition is not known, keeps the results right.
// fault: wrong
// input: 5x9xf32=1
// expected: 5x9xf32=2 2 2 2 2 2 2 2 2 1 1 1 1 1 1 1 1 1 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
// expected: 5x9xf32=2
func.func @main(%x: tensor<5x9xf32>) -> (tensor<5x9xf32>, tensor<5x9xf32>) {
  %d = stablehlo.add %x, %x : tensor<5x9xf32>
  %same = stablehlo.optimization_barrier %d : tensor<5x9xf32>
  %part = stablehlo.slice %x [0:1, 0:9] : (tensor<5x9xf32>) -> tensor<1x9xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %u = stablehlo.dynamic_update_slice %d, %part, %one, %none
      : (tensor<5x9xf32>, tensor<1x9xf32>, tensor<i32>, tensor<i32>) -> tensor<5x9xf32>
  return %u, %same : tensor<5x9xf32>, tensor<5x9xf32>
}
