// A negative start of 8 bits is taken for a large one.
// fault: wrong
// input: 10xf32=0 1 2 3 4 5 6 7 8 9
// input: i8=-1
// expected: 3xf32=0 1 2
func.func @main(%x: tensor<10xf32>, %i: tensor<i8>) -> tensor<3xf32> {
  %r = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<10xf32>, tensor<i8>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
