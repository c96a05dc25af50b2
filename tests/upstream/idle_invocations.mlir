// Two invocations of a workgroup add the same products to the same places.
// cause: The workgroup has 16 invocations along y and 2 along z. The places of the results depend on y only, so both
// cause: invocations along z load a sum, add to it and store it again: products are counted twice, depending on the
// cause: order. The size along a dimension that the code does not read has to be 1.
// target: volta
// fault: code "^(?!.*LocalInvocationId___addr : vector<3xi32>\n\s*%\w+ = spirv\.CompositeExtract %\w+\[2 : i32\]).*spirv\.FAdd.*"LocalSize", 1, 16, 2"
func.func @main(%a: tensor<2x14x6xf32>, %b: tensor<2x6x3xf32>) -> tensor<2x14x3xf32> {
  %p = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x14x6xf32>, tensor<2x6x3xf32>) -> tensor<2x14x3xf32>
  return %p : tensor<2x14x3xf32>
}
