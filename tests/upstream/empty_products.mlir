// A product of booleans over no elements divides by zero in the compiler.
// cause: The compiler divides by the number of features, which is zero. Other element types fold in the same place.
// fault: crash
// input: 2x0xi1
// input: 0x3xi1
// expected: 2x3xi1=0
func.func @main(%x: tensor<2x0xi1>, %y: tensor<0x3xi1>) -> tensor<2x3xi1> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x0xi1>, tensor<0x3xi1>) -> tensor<2x3xi1>
  return %r : tensor<2x3xi1>
}
