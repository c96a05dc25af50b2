// A conversion from unsigned numbers becomes a part of the product, which takes 200 for -56.
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
