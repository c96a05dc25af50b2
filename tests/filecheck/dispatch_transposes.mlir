// RUN: hloforge opt %s --pass=dispatch-transposes | filecheck %s --implicit-check-not=stablehlo.transpose

// CHECK-LABEL: func.func @main
// CHECK: [[ROWS:%.+]] = stablehlo.reshape %arg0 : (tensor<16x128x12x64xf32>) -> tensor<24576x64xf32>
// CHECK: [[Y:%.+]] = "flow.dispatch.workgroups"({{%.+}}, [[ROWS]]) ({
// CHECK: scf.for
// CHECK: [[V:%.+]] = vector.transfer_read
// CHECK: vector.transfer_write [[V]]
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9].*}} -> tensor<24576x64xf32>
// CHECK: [[R:%.+]] = stablehlo.reshape [[Y]] : (tensor<24576x64xf32>) -> tensor<16x12x128x64xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<16x128x12x64xf32>) -> tensor<16x12x128x64xf32> {
  %y = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<16x128x12x64xf32>) -> tensor<16x12x128x64xf32>
  return %y : tensor<16x12x128x64xf32>
}
