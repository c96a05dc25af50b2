// RUN: hloforge opt %s --keep-marks --pass=legalize-host-calls | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T1:%.+]] = stablehlo.create_token
// CHECK: [[X:%.+]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK: [[Y:%.+]] = stablehlo.custom_call @hloforge.host_call([[X]]) {has_side_effect = true,
// CHECK-SAME: hloforge.host_call = "{{.*}}operands{{.*}}token[]{{.*}}f32[4,8]{0,1}{{.*}}target\22: \22f\22
// CHECK-SAME: : (tensor<8x4xf32>) -> tensor<3xi8>
// CHECK: [[T2:%.+]] = stablehlo.after_all [[T1]] : !stablehlo.token
// CHECK: [[R:%.+]] = stablehlo.convert [[Y]] : (tensor<3xi8>) -> tensor<3xi4>
// CHECK: return [[R]], [[T2]]
module attributes {hloforge.host_functions = ["f"]} {
  func.func @main(%x: tensor<4x8xf32>) -> (tensor<3xi4>, !stablehlo.token) {
    %t1 = stablehlo.create_token : !stablehlo.token
    %r:2 = stablehlo.custom_call @f(%t1, %x) {has_side_effect = true,
      operand_layouts = [dense<> : tensor<0xindex>, dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>]}
      : (!stablehlo.token, tensor<4x8xf32>) -> (!stablehlo.token, tensor<3xi4>)
    return %r#1, %r#0 : tensor<3xi4>, !stablehlo.token
  }
}
