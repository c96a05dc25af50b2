// The arithmetic of (a + b) - b is not decorated with NoContraction, so that drivers for Vulkan may make a of it.
// cause: SPIR-V lets a driver rearrange floating-point arithmetic that lacks the decoration NoContraction. Mesa's
// cause: lavapipe makes a of (a + b) - b, by which programs find rounding errors (compensated sums, products in two
// cause: parts). StableHLO defines each operation by IEEE 754. IREE decorates no operation.
// target: vulkan
// fault: code "spirv\.FAdd [^\n]*\n\s*%\w+ = spirv\.FSub (?!.*[Nn]o_?[Cc]ontraction)"
func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %s = stablehlo.add %a, %b : tensor<64xf32>
  %r = stablehlo.subtract %s, %b : tensor<64xf32>
  return %r : tensor<64xf32>
}
