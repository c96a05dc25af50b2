// A sum along two dimensions that are apart from each other, the last one odd, has no SPIR-V.
// cause: Each of both dimensions gets threads, and what a thread reads of them is no vector of one dimension; the pass that
// cause: takes vectors of several dimensions apart ran before.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "with rank > 1 should be broken down by prior passes"
func.func @main(%x: tensor<16x5x5xf32>) -> tensor<5xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 2] : (tensor<16x5x5xf32>, tensor<f32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}
