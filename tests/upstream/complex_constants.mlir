// A constant of 128 bits is refused.
// fault: compile-error "stream.async.splat"
func.func @main() -> tensor<4xcomplex<f64>> {
  %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f64>>
  return %c : tensor<4xcomplex<f64>>
}
