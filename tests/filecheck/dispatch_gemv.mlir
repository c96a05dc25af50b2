// RUN: hloforge opt %s --pass=dispatch-gemv | filecheck %s --implicit-check-not=stablehlo.dot_general

// CHECK: "flow.executable"
// CHECK: [[X:%.+]] = "iree_tensor_ext.dispatch.tensor.load"(%arg0
// CHECK: [[W:%.+]] = "iree_tensor_ext.dispatch.tensor.load"(%arg1
// CHECK: scf.for [[DEPTH:%[a-zA-Z0-9_]+]] = {{.*}} step
// CHECK: [[E:%.+]] = tensor.extract [[X]]
// CHECK: scf.for [[COLUMNS:%[a-zA-Z0-9_]+]] = {{.*}} step
// CHECK: [[ROW:%.+]] = vector.transfer_read [[W]]{{\[.*}}, [[COLUMNS]]]
// CHECK: [[S:%.+]] = vector.broadcast [[E]]
// CHECK: vector.fma [[S]], [[ROW]]
// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0 : (tensor<1x4096xf32>) -> tensor<1x1x4096xf32>
// CHECK: [[Y:%.+]] = "flow.dispatch"({{.*}}[[X]], %arg1)
// CHECK-SAME: hloforge.work = {{[1-9]}}
// CHECK: [[R:%.+]] = stablehlo.reshape [[Y]]
// CHECK: return [[R]]
func.func @main(%x: tensor<1x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<1x4096xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
