// A reversal of unsigned integers is refused.
// fault: compile-error "failed to legalize operation 'linalg.generic'"
// input: 4xui8=1 2 3 4
// expected: 4xui8=4 3 2 1
func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<4xui8>
  return %r : tensor<4xui8>
}
