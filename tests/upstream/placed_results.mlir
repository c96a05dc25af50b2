// What is computed for a part of an array lies three numbers too early.
// cause: The dispatch of the addition writes into the updated array, at byte 28 of the binding. SPIRVVectorizeLoadStore makes
// cause: memref<256xvector<4xi32>> of that, whatever the alignment of the offset is (memref.assume_alignment says 4), and
// cause: the offset is divided by the 16 bytes of a vector. Numbers that are written one by one, of fewer elements, are right.
// target: vulkan
// flags: --iree-vulkan-target=llvmpipe
// fault: code "spirv\.Store .StorageBuffer. %\d+, %\d+ : vector<4xi32>"
func.func @main(%a: tensor<2000xi32>, %x: tensor<1024xi32>) -> tensor<2000xi32> {
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %y = stablehlo.add %x, %x : tensor<1024xi32>
  %r = stablehlo.dynamic_update_slice %a, %y, %seven : (tensor<2000xi32>, tensor<1024xi32>, tensor<i32>) -> tensor<2000xi32>
  return %r : tensor<2000xi32>
}
