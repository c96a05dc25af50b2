// RUN: hloforge opt %s --pass=legalize-bounded-results --keep-marks | filecheck %s

// CHECK: hloforge.bounded_results = [array<i64: -3, 3>, array<i64: 3, -4>]
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<8x3xf32>, tensor<24xf32>, tensor<i32>, tensor<i32>)
// CHECK: [[Y:%.+]] = stablehlo.add %arg0, %arg0 : tensor<8x3xf32>
// CHECK: [[MOST:%.+]] = stablehlo.minimum %arg1, %{{.+}} : tensor<i32>
// CHECK: [[SIZE:%.+]] = stablehlo.maximum [[MOST]], %{{.+}} : tensor<i32>
// CHECK: [[FLAT:%.+]] = stablehlo.reshape %{{.+}} : (tensor<3x8xf32>) -> tensor<24xf32>
// CHECK: [[ROW:%.+]] = stablehlo.slice [[FLAT]] [16:24]
// CHECK: stablehlo.pad %{{.+}}, low = [0], high = [16]
// CHECK: [[PACKED:%.+]] = stablehlo.dynamic_update_slice %{{.+}}, [[ROW]], %{{.+}}
// CHECK: return [[Y]], [[PACKED]], [[SIZE]], %{{.+}}
func.func @main(%x: tensor<8x3xf32>, %n: tensor<i32>) -> (tensor<?x3xf32>, tensor<3x?xf32>) {
  %cut = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x3xf32>, tensor<i32>) -> tensor<?x3xf32>
  %y = stablehlo.add %cut, %cut : tensor<?x3xf32>
  %z = stablehlo.transpose %y, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
  return %y, %z : tensor<?x3xf32>, tensor<3x?xf32>
}
