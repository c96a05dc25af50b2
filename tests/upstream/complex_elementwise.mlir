// The logarithm of a complex number near 1 loses all digits of its real part.
// cause: complex.log takes the logarithm of the absolute value, which is 1 in f32 for 1 + 1e-4i. log1p of (|z| - 1)
// cause: in a form without cancellation keeps the digits; XLA has 5e-9 here.
// fault: wrong
// input: 1xf32=1
// input: 1xf32=1e-4
// expected: 1xf32=0.5
func.func @main(%x: tensor<1xf32>, %y: tensor<1xf32>) -> tensor<1xf32> {
  %z = stablehlo.complex %x, %y : tensor<1xcomplex<f32>>
  %r = stablehlo.log %z : tensor<1xcomplex<f32>>
  %a = stablehlo.real %r : (tensor<1xcomplex<f32>>) -> tensor<1xf32>
  %b = stablehlo.constant dense<1.0e8> : tensor<1xf32>
  %c = stablehlo.multiply %a, %b : tensor<1xf32>
  return %c : tensor<1xf32>
}
