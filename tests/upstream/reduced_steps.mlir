// The sum of every second row is that of the first rows.
// cause: The distribution of reductions to the threads of a workgroup leaves out the steps of the slice that it loads: row
// cause: i is read where row i of the array is, and not row 2 i.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: code "spirv\.IMul %\d+, %cst3_i32"
func.func @main(%x: tensor<16x3xf32>) -> tensor<3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.slice %x [0:16:2, 0:3] : (tensor<16x3xf32>) -> tensor<8x3xf32>
  %r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
