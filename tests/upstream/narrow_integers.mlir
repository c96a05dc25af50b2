// An odd count of packed integers is refused.
// cause: Integers of 4 bits are packed, two in a byte. The number of bytes of a packed array is not known where the
// cause: count of elements is odd.
// fault: compile-error "failed to calculate total byte count"
func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> {
  %c = stablehlo.constant dense<[1, -2, 7]> : tensor<3xi4>
  %n = stablehlo.convert %x : (tensor<3xi8>) -> tensor<3xi4>
  %s = stablehlo.add %n, %c : tensor<3xi4>
  %r = stablehlo.convert %s : (tensor<3xi4>) -> tensor<3xi8>
  return %r : tensor<3xi8>
}
