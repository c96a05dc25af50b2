// RUN: hloforge opt %s --pass=legalize-entry-abi | filecheck %s

// CHECK: func.func @main(%arg0: tensor<8x4xf32>{{.*}}, %arg1: tensor<3xi8>{{.*}}) -> (tensor<4x8xf32>, tensor<3xi8>)
// CHECK-DAG: [[X:%.+]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-DAG: [[K:%.+]] = stablehlo.convert %arg1 : (tensor<3xi8>) -> tensor<3xi4>
// CHECK: [[R:%.+]] = stablehlo.convert [[K]] : (tensor<3xi4>) -> tensor<3xi8>
// CHECK: return [[X]], [[R]]
module attributes {hloforge.parameter_names = ["x", "k", "t"], hloforge.input_output_alias = [],
    hloforge.parameter_shapes = ["f32[4,8]{0,1}", "s4[3]", "token[]"], hloforge.result_shape = "(f32[4,8], s4[3])"} {
  func.func @main(%x: tensor<4x8xf32>, %k: tensor<3xi4>, %t: !stablehlo.token) -> (tensor<4x8xf32>, tensor<3xi4>) {
    return %x, %k : tensor<4x8xf32>, tensor<3xi4>
  }
}
