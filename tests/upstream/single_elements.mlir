// An element that is cut out, given more dimensions, computed with and returned is not compiled.
// cause: The dispatch returns the slice beside what it computes, and a pattern drops its unit dimensions as if it had the
// cause: rank of the result. With two elements, or a barrier between slice and reshape, it is compiled.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: compile-error "expected rank to be smaller or equal to the other rank"
func.func @main(%x: tensor<2xi32>, %y: tensor<1x1xi32>) -> (tensor<1x1xi32>, tensor<1x1xi32>) {
  %s = stablehlo.slice %x [0:1] : (tensor<2xi32>) -> tensor<1xi32>
  %r = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<1x1xi32>
  %z = stablehlo.xor %r, %y : tensor<1x1xi32>
  return %z, %r : tensor<1x1xi32>, tensor<1x1xi32>
}
