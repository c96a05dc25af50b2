// Readers of a dispatch's result that equals another one get the dispatch's first result.
// cause: Two results of one flow.dispatch.region become equal only after fusion. Its canonicalization then drops one
// cause: and asks for the new number of the kept result under the number of the dropped one, so that its readers get
// cause: the first result of the dispatch, whatever that is. It is wrong without a word where both have one type.
// flags: --iree-opt-level=O2
// fault: wrong
// input: 2x2xf32=1 2 3 4
// expected: 2x2xf32=2 0 6 8
// expected: 2x2xf32=3 1 7 9
// expected: 2x2xf32=2 0 6 8
func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %rows = stablehlo.iota dim = 0 : tensor<2x2xi32>
  %columns = stablehlo.iota dim = 1 : tensor<2x2xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
  %none = stablehlo.constant dense<0> : tensor<2x2xi32>
  %one = stablehlo.constant dense<1.0> : tensor<2x2xf32>
  %moved = stablehlo.add %rows, %none : tensor<2x2xi32>
  %lower = stablehlo.compare GE, %rows, %columns : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
  %again = stablehlo.compare GE, %moved, %columns : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
  %d = stablehlo.add %x, %x : tensor<2x2xf32>
  %y = stablehlo.select %lower, %d, %zeros : tensor<2x2xi1>, tensor<2x2xf32>
  %s = stablehlo.select %again, %y, %zeros : tensor<2x2xi1>, tensor<2x2xf32>
  %e = stablehlo.add %y, %one : tensor<2x2xf32>
  return %s, %e, %y : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
