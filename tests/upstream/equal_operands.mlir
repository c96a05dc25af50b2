// The difference of a dynamic array and itself is folded into a constant of dynamic shape.
// fault: compile-error "must be statically shaped tensor"
// input: 3xi32=1 2 3
// expected: 3xi32=0 0 0
func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %r = stablehlo.subtract %x, %x : tensor<?xi32>
  return %r : tensor<?xi32>
}
