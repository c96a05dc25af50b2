// Uniform random numbers are evenly spaced; the result says whether their differences are equal.
// cause: stablehlo.rng becomes 1103515245 i + 12345 of the element's index i, in 32 bits, scaled to the range: one
// cause: step of a linear congruential generator for each element (since iree-org/iree#6676). Numbers at neighbouring
// cause: places therefore differ by one constant, modulo the range, and every call returns the same numbers.
// fault: wrong
// expected: i32=0
func.func @main() -> tensor<i32> {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<[4]> : tensor<1xi64>
  %x = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %a = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>
  %b = stablehlo.slice %x [1:3] : (tensor<4xf32>) -> tensor<2xf32>
  %c = stablehlo.slice %x [2:4] : (tensor<4xf32>) -> tensor<2xf32>
  %d = stablehlo.subtract %b, %a : tensor<2xf32>
  %e = stablehlo.subtract %c, %b : tensor<2xf32>
  %f = stablehlo.subtract %d, %e : tensor<2xf32>
  %g = stablehlo.abs %f : tensor<2xf32>
  %eps = stablehlo.constant dense<1.0e-4> : tensor<2xf32>
  %p = stablehlo.compare LT, %g, %eps : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %one = stablehlo.constant dense<true> : tensor<i1>
  %all = stablehlo.reduce(%p init: %one) applies stablehlo.and across dimensions = [0]
      : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
  %r = stablehlo.convert %all : (tensor<i1>) -> tensor<i32>
  return %r : tensor<i32>
}
