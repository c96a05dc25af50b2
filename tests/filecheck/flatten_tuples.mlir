// RUN: hloforge opt %s --pass=flatten-tuples | filecheck %s

// CHECK: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %arg1 : tensor<f32>
func.func @main(%t: tuple<tensor<2xf32>, tensor<f32>>) -> tensor<f32> {
  %e = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tensor<f32>>) -> tensor<f32>
  return %e : tensor<f32>
}
