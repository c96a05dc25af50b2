// RUN: hloforge opt %s --pass=legalize-whole-slices | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg1, %arg3
func.func @main(%list: tensor<1x4xf32>, %part: tensor<1x4xf32>, %i: tensor<i32>, %next: tensor<i32>)
    -> (tensor<1x4xf32>, tensor<i32>) {
  %u = stablehlo.dynamic_update_slice %list, %part, %i, %i
    : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %n = stablehlo.reshape %next : (tensor<i32>) -> tensor<i32>
  return %u, %n : tensor<1x4xf32>, tensor<i32>
}
