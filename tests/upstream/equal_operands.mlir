// The difference of a dynamic array and itself is folded into a constant of dynamic shape.
// cause: The fold of x - x makes a stablehlo.constant of the result's type, which is dynamic here. The fold has to
// cause: give up on dynamic shapes.
// fault: compile-error "must be statically shaped tensor"
// input: 3xi32=1 2 3
// expected: 3xi32=0 0 0
func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %r = stablehlo.subtract %x, %x : tensor<?xi32>
  return %r : tensor<?xi32>
}
