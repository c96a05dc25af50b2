// RUN: hloforge opt %s --keep-marks --pass=lower-mhlo | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = stablehlo.broadcast_in_dim %arg2, dims = [0, 2] : (tensor<4x2xf32>) -> tensor<4x1x2x32xf32>
// CHECK: [[AS:%.+]] = stablehlo.reshape [[A]] {{.*}} -> tensor<4x64xf32>
// CHECK: [[X:%.+]] = stablehlo.multiply %arg0, [[AS]]
// CHECK: [[B:%.+]] = stablehlo.broadcast_in_dim %arg3, dims = [0, 2] : (tensor<2x4xf32>) -> tensor<2x32x4x1xf32>
// CHECK: [[BS:%.+]] = stablehlo.reshape [[B]] {{.*}} -> tensor<64x4xf32>
// CHECK: [[Y:%.+]] = stablehlo.multiply %arg1, [[BS]]
// CHECK: [[Z:%.+]] = stablehlo.dot_general [[X]], [[Y]], contracting_dims = [1] x [0]
// CHECK: return [[Z]]
func.func @main(%x: tensor<4x64xf32>, %y: tensor<64x4xf32>, %a: tensor<4x2xf32>, %b: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %z = stablehlo.custom_call @hloforge.scaled_dot(%x, %y, %a, %b)
    {backend_config = "{\"contracting\": [[1], [0]], \"batch\": [[], []]}"}
    : (tensor<4x64xf32>, tensor<64x4xf32>, tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}
