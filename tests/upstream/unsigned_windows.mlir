// A window over padded unsigned integers is refused.
// cause: A reduce_window with padding on one side only, as for a running sum, leaves a conversion of its operand from
// cause: ui16 to i16 that no pattern takes. The same window over i16 compiles.
// fault: compile-error "failed to legalize unresolved target materialization from ('ui16') to ('i16')"
func.func @main(%x: tensor<4x9xui16>) -> tensor<4x9xui16> {
  %zero = stablehlo.constant dense<0> : tensor<ui16>
  %r = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>,
    window_dimensions = array<i64: 1, 9>}> ({
    ^bb0(%a: tensor<ui16>, %b: tensor<ui16>):
      %s = stablehlo.add %a, %b : tensor<ui16>
      stablehlo.return %s : tensor<ui16>
  }) : (tensor<4x9xui16>, tensor<ui16>) -> tensor<4x9xui16>
  return %r : tensor<4x9xui16>
}
