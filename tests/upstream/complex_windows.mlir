// Crashes on running sums of two arrays that become complex numbers, for CUDA.
// cause: One dispatch computes the sums and makes complex numbers of them. deriveLinalgOpThreadTileSizes in
// cause: DerivedConfigUtils.cpp asks for the width of its result's element type (getIntOrFloatBitWidth), which complex
// cause: types do not have.
// target: cuda
// fault: crash
func.func @main(%x: tensor<32xf32>, %y: tensor<32xf32>) -> tensor<32xcomplex<f32>> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %z, %z) <{padding = dense<[[31, 0]]> : tensor<1x2xi64>,
    window_dimensions = array<i64: 32>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      %1 = stablehlo.add %a, %c : tensor<f32>
      %2 = stablehlo.add %b, %d : tensor<f32>
      stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<32xf32>, tensor<32xf32>, tensor<f32>, tensor<f32>) -> (tensor<32xf32>, tensor<32xf32>)
  %3 = stablehlo.complex %0#0, %0#1 : tensor<32xcomplex<f32>>
  return %3 : tensor<32xcomplex<f32>>
}
