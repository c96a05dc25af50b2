// No barrier stands between what a workgroup stores in its memory and what other invocations load of it.
// cause: The maxima of the columns are computed into the workgroup's memory. The subtraction that follows in the same
// cause: dispatch is given to the invocations in another way, and loads maxima that other invocations have stored. No
// cause: ControlBarrier stands between the two where sizes do not divide evenly (pipeline BaseDistribute). On Mesa's
// cause: lavapipe the results are wrong.
// target: vulkan
// fault: code "spirv\.Store "Workgroup" (%\w+),(?!.*ControlBarrier).*spirv\.Load "Workgroup" (?!\1 )%\w+"
func.func @main(%x: tensor<9x33xf32>) -> tensor<9x33xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
      : (tensor<9x33xf32>, tensor<f32>) -> tensor<33xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<33xf32>) -> tensor<9x33xf32>
  %r = stablehlo.subtract %x, %b : tensor<9x33xf32>
  return %r : tensor<9x33xf32>
}
