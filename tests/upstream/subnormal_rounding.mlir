// The floor of a negative subnormal number is not -1.
// cause: IREE's workers run with subnormals flushed to zero (FTZ and DAZ), so that the code made of llvm.floor takes
// cause: the number for a zero. Here it returns the number itself; with other processors -0 was seen. The floor of a
// cause: negative number above -1 is -1, however small it is.
// fault: wrong
// input: 1xf32=-1e-40
// expected: 1xf32=-1
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %r = stablehlo.floor %x : tensor<1xf32>
  return %r : tensor<1xf32>
}
