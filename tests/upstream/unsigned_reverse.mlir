// A reversal of unsigned integers is refused.
// cause: stablehlo.reverse becomes a linalg.generic of ui8, which no later pattern converts to the signless type.
// cause: iree-org/iree#13723 (closed) reported the same for mhlo.reverse in 2023. The reversal of a bitcast to the
// cause: signless type compiles.
// fault: compile-error "failed to legalize operation 'linalg.generic'"
// input: 4xui8=1 2 3 4
// expected: 4xui8=4 3 2 1
func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<4xui8>
  return %r : tensor<4xui8>
}
