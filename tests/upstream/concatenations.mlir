// Two arrays that begin alike are written in each other's place.
// cause: A concatenation becomes a chain of updates of an empty array. Where two of them begin alike, the first
// cause: update is common to both (CSE), and the second part of each is then written in place into that one array.
// cause: The copy between them is elided. An optimization barrier before one of the concatenations keeps the results
// cause: right.
// fault: wrong
// input: 4xf32=1 -2 5 3
// input: 4xf32=-4 6 7 8
// input: 4xf32=-9 2 1 3
// expected: 8xf32=-1 -2 -5 -3 4 -6 -7 -8
// expected: 4xf32=-4 6 7 8
// expected: 4xf32=2 5 3 -9
// expected: 2xf32=1 5
// expected: 3xf32=2 1 3
func.func @main(%x: tensor<4xf32>, %p: tensor<4xf32>, %q: tensor<4xf32>)
    -> (tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<3xf32>) {
  %0 = stablehlo.abs %x : tensor<4xf32>
  %1 = stablehlo.concatenate %0, %p, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = stablehlo.concatenate %0, %q, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %low = stablehlo.constant dense<-1.0e30> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %low) applies stablehlo.maximum across dimensions = [0]
      : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %4 = stablehlo.convert %3 : (tensor<f32>) -> tensor<i32>
  %5 = stablehlo.dynamic_slice %1, %4, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
  %6 = stablehlo.negate %1 : tensor<8xf32>
  %7 = stablehlo.slice %2 [1:5] : (tensor<8xf32>) -> tensor<4xf32>
  %8 = stablehlo.slice %2 [0:4:2] : (tensor<8xf32>) -> tensor<2xf32>
  %9 = stablehlo.slice %2 [5:8] : (tensor<8xf32>) -> tensor<3xf32>
  return %6, %5, %7, %8, %9 : tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<3xf32>
}
