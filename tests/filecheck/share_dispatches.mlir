// RUN: hloforge opt %s --pass=dispatch-transposes --pass=share-dispatches | filecheck %s

// CHECK: "flow.executable"
// CHECK: "flow.executable.export"
// CHECK: function_ref = @[[CODE:[a-z0-9_]+]],
// CHECK: func.func @[[CODE]](
// CHECK-LABEL: func.func @main
// CHECK-NOT: "flow.dispatch.workgroups"
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0
// CHECK: [[A:%.+]] = "flow.dispatch"({{%.+}}, [[X]]) {entry_points = [@[[CODE]]::@[[CODE]]], hloforge.work = {{[1-9]}}
// CHECK: [[V:%.+]] = stablehlo.reshape [[A]]
// CHECK: [[Y:%.+]] = stablehlo.reshape %arg1
// CHECK: [[B:%.+]] = "flow.dispatch"({{%.+}}, [[Y]]) {entry_points = [@[[CODE]]::@[[CODE]]], hloforge.work = {{[1-9]}}
// CHECK: [[W:%.+]] = stablehlo.reshape [[B]]
// CHECK: return [[V]], [[W]]
func.func @main(%x: tensor<16x128x12x64xf32>, %y: tensor<16x128x12x64xf32>)
    -> (tensor<16x12x128x64xf32>, tensor<16x12x128x64xf32>) {
  %a = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<16x128x12x64xf32>) -> tensor<16x12x128x64xf32>
  %b = stablehlo.transpose %y, dims = [0, 2, 1, 3] : (tensor<16x128x12x64xf32>) -> tensor<16x12x128x64xf32>
  return %a, %b : tensor<16x12x128x64xf32>, tensor<16x12x128x64xf32>
}
