// A conversion from unsigned numbers becomes a part of the product, which takes 200 for -56.
// cause: The conversion is made a part of linalg.matmul, which then has operands of f32 and i8, and whose region
// cause: extends every integer with its sign: 200 of ui8 counts as -56, true of i1 as -1. The type of the operand has
// cause: lost its sign by then. An optimization barrier behind the conversion keeps the results right.
// fault: wrong
// input: 2x2xf32=1 2 3 4
// input: 2x2xi8=200 0 1 1
// expected: 2x2xf32=202 2 604 4
func.func @main(%a: tensor<2x2xf32>, %y: tensor<2x2xui8>) -> tensor<2x2xf32> {
  %x = stablehlo.convert %y : (tensor<2x2xui8>) -> tensor<2x2xf32>
  %r = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
      : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
