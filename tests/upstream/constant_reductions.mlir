// A sum of what folds to one number, whatever the array holds, adds that number once.
// cause: An operand of the reduction is found to be one number in all places (a comparison with the least number of
// cause: its type), and the reduction of that splat is folded to one application of the reducer instead of one for
// cause: each element: after global optimization the result is the constant 1. It happens at O2 only.
// flags: --iree-opt-level=O2
// fault: wrong
// input: 5xi8=1 2 3 4 5
// expected: i32=5
func.func @main(%x: tensor<5xui8>) -> tensor<i32> {
  %none = stablehlo.constant dense<0> : tensor<5xui8>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %m = stablehlo.compare GE, %x, %none : (tensor<5xui8>, tensor<5xui8>) -> tensor<5xi1>
  %n = stablehlo.convert %m : (tensor<5xi1>) -> tensor<5xi32>
  %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<5xi32>, tensor<i32>) -> tensor<i32>
  return %s : tensor<i32>
}
