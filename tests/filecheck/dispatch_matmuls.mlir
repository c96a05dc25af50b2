// RUN: hloforge opt %s --pass=dispatch-matmuls | filecheck %s --implicit-check-not=stablehlo.dot_general

// A strip of the right factor is copied, then read once for some rows of the left one.
// CHECK: "flow.executable"
// CHECK: [[RHS:%.+]] = "iree_tensor_ext.dispatch.tensor.load"(%arg1
// CHECK: [[LHS:%.+]] = "iree_tensor_ext.dispatch.tensor.load"(%arg0
// CHECK: [[V:%.+]] = vector.transfer_read [[RHS]]
// CHECK: vector.transfer_write [[V]], {{.*}} tensor<[[STRIPS:[0-9x]+]]xf32>
// CHECK: scf.for
// CHECK: [[P:%.+]] = vector.transfer_read {{.*}} tensor<[[STRIPS]]xf32>
// CHECK: [[E:%.+]] = tensor.extract [[LHS]]
// CHECK: [[S:%.+]] = vector.broadcast [[E]]
// CHECK: vector.fma [[S]], [[P]]
// CHECK-LABEL: func.func @main
// CHECK: [[B:%.+]] = stablehlo.reshape %arg1
// CHECK: [[A:%.+]] = stablehlo.reshape %arg0
// CHECK: [[Y:%.+]]:2 = "flow.dispatch"({{.*}}[[A]], [[B]])
// CHECK-SAME: hloforge.work = {{[1-9]}}
// CHECK: [[R:%.+]] = stablehlo.reshape [[Y]]#0
// CHECK: return [[R]]
func.func @main(%a: tensor<512x2048xf32>, %b: tensor<2048x2048xf32>) -> tensor<512x2048xf32> {
  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<512x2048xf32>, tensor<2048x2048xf32>) -> tensor<512x2048xf32>
  return %y : tensor<512x2048xf32>
}
