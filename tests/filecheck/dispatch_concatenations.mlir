// RUN: hloforge opt %s --pass=dispatch-concatenations | filecheck %s --implicit-check-not=stablehlo.concatenate

// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = stablehlo.reshape %arg0 : (tensor<256x1x32xf32>) -> tensor<256x32xf32>
// CHECK: [[B:%.+]] = stablehlo.reshape %arg1
// CHECK: [[C:%.+]] = stablehlo.reshape %arg2
// CHECK: [[Y:%.+]] = "flow.dispatch.workgroups"({{%.+}}, [[A]], [[B]], [[C]]) ({
// CHECK: scf.for
// CHECK: [[V:%.+]] = vector.transfer_read
// CHECK: vector.transfer_write [[V]]
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9].*}} -> tensor<256x96xf32>
// CHECK: [[R:%.+]] = stablehlo.reshape [[Y]] : (tensor<256x96xf32>) -> tensor<256x3x32xf32>
// CHECK: return [[R]]
func.func @main(%a: tensor<256x1x32xf32>, %b: tensor<256x1x32xf32>, %c: tensor<256x1x32xf32>) -> tensor<256x3x32xf32> {
  %y = stablehlo.concatenate %a, %b, %c, dim = 1
    : (tensor<256x1x32xf32>, tensor<256x1x32xf32>, tensor<256x1x32xf32>) -> tensor<256x3x32xf32>
  return %y : tensor<256x3x32xf32>
}
