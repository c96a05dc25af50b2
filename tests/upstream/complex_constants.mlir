// A constant of 128 bits is refused.
// cause: Arrays are filled with patterns of at most 64 bits (stream.async.splat), and one element of complex<f64> has
// cause: 128. Two arrays of f64, joined by stablehlo.complex behind an optimization barrier, compile.
// fault: compile-error "stream.async.splat"
func.func @main() -> tensor<4xcomplex<f64>> {
  %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f64>>
  return %c : tensor<4xcomplex<f64>>
}
