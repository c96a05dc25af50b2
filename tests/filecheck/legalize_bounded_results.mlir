// RUN: hloforge opt %s --pass=legalize-bounded-results --keep-marks | filecheck %s

// CHECK: hloforge.bounded_results = [array<i64: -3, 3>, array<i64: 3, -4>]
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8x3xf32>, tensor<24xf32>, tensor<i32>, tensor<i32>)
// CHECK: [[Y:%.+]] = stablehlo.add %arg0, %arg0 : tensor<8x3xf32>
// CHECK: [[MOST:%.+]] = stablehlo.minimum %arg1, %{{.+}} : tensor<i32>
// CHECK: [[SIZE:%.+]] = stablehlo.maximum [[MOST]], %{{.+}} : tensor<i32>
// CHECK: [[FIRST:%.+]] = stablehlo.pad %{{.+}}, %{{.+}}, low = [0], high = [16], interior = [0]
// CHECK: [[SECOND:%.+]] = stablehlo.dynamic_update_slice [[FIRST]], %{{.+}}, %{{.+}} : (tensor<24xf32>, tensor<8xf32>
// CHECK: [[THIRD:%.+]] = stablehlo.dynamic_update_slice [[SECOND]], %{{.+}}, %{{.+}} : (tensor<24xf32>, tensor<8xf32>
// CHECK: return [[Y]], [[THIRD]], [[SIZE]], %{{.+}}
func.func @main(%x: tensor<8x3xf32>, %n: tensor<i32>) -> (tensor<?x3xf32>, tensor<3x?xf32>) {
  %cut = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x3xf32>, tensor<i32>) -> tensor<?x3xf32>
  %y = stablehlo.add %cut, %cut : tensor<?x3xf32>
  %z = stablehlo.transpose %y, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
  return %y, %z : tensor<?x3xf32>, tensor<3x?xf32>
}
