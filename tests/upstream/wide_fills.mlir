// Two paddings with the same number of 64 bits are written into one array.
// cause: No command fills with more than 32 bits, so that iree-stream-materialize-builtins makes a dispatch of each
// cause: stream.async.splat of 64 bits. The cse after it merges equal ones, although copies were decided on and each
// cause: is overwritten in place. Where the second one stands in a stream.async.concurrent, the verifier finds it
// cause: ("used resource not listed in explicit captures"); elsewhere results are wrong, as here.
// flags: --iree-stream-partitioning-favor=debug
// fault: wrong
// input: 2xf64=1 4
// expected: 3xf64=-0.5 1 4
// expected: 3xf64=2 8 -0.5
func.func @main(%x: tensor<2xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %v = stablehlo.constant dense<0.5> : tensor<f64>
  %n = stablehlo.negate %x : tensor<2xf64>
  %0 = stablehlo.pad %n, %v, low = [1], high = [0], interior = [0] : (tensor<2xf64>, tensor<f64>) -> tensor<3xf64>
  %t = stablehlo.add %n, %n : tensor<2xf64>
  %1 = stablehlo.pad %t, %v, low = [0], high = [1], interior = [0] : (tensor<2xf64>, tensor<f64>) -> tensor<3xf64>
  %a = stablehlo.negate %0 : tensor<3xf64>
  %b = stablehlo.negate %1 : tensor<3xf64>
  return %a, %b : tensor<3xf64>, tensor<3xf64>
}
