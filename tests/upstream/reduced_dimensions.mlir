// The sum along three dimensions that are apart from each other reads the first of them at 0 only.
// cause: delinearizeLaneId in MLIR's VectorDistribute.cpp divides the number of a lane, for each dimension from the last
// cause: on, by the product of all sizes so far, by which it was divided before, and not by that of the dimension. With
// cause: sizes of 2, 2 and 2 the first place is lane / 8 of eight lanes, which is 0, and not lane / 4.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: code "%cst-12_i32 = spirv.Constant -12"
func.func @main(%x: tensor<2x3x2x3x2xf32>) -> tensor<3x3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 2, 4] : (tensor<2x3x2x3x2xf32>, tensor<f32>) -> tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}
