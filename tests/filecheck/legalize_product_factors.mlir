// RUN: hloforge opt %s --pass=legalize-product-factors | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[ONES:%.+]] = stablehlo.constant dense<1.000000e+00> : tensor<4x4xf32>
// CHECK-DAG: [[ZEROS:%.+]] = stablehlo.constant dense<0.000000e+00> : tensor<4x4xf32>
// CHECK: [[X:%.+]] = stablehlo.select %arg1, [[ONES]], [[ZEROS]] : tensor<4x4xi1>, tensor<4x4xf32>
// CHECK: [[R:%.+]] = stablehlo.dot_general %arg0, [[X]]
// CHECK: return [[R]]
func.func @main(%a: tensor<4x4xf32>, %mask: tensor<4x4xi1>) -> tensor<4x4xf32> {
  %x = stablehlo.convert %mask : (tensor<4x4xi1>) -> tensor<4x4xf32>
  %r = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
