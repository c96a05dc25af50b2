// RUN: hloforge opt %s --pass=decompose-set-dimension-size | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = stablehlo.real_dynamic_slice %arg0,
// CHECK-SAME: -> tensor<?x3xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4x3xf32>, %n: tensor<i32>) -> tensor<?x3xf32> {
  %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4x3xf32>, tensor<i32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
