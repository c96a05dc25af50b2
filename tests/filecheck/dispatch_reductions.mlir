// RUN: hloforge opt %s --pass=dispatch-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[START:%.+]] = stablehlo.constant dense<0.0
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0 : (tensor<4096x512xf32>) -> tensor<1x4096x512xf32>
// CHECK: [[P:%.+]] = "flow.dispatch.workgroups"({{.*}}[[X]]) ({
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9]}}
// CHECK: [[S:%.+]] = stablehlo.reduce([[P]] init: [[START]]) applies stablehlo.add across dimensions = [1]
// CHECK: [[R:%.+]] = stablehlo.reshape [[S]] : (tensor<1x512xf32>) -> tensor<512xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4096x512xf32>) -> tensor<512xf32> {
  %start = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.multiply %x, %x : tensor<4096x512xf32>
  %s = stablehlo.reduce(%y init: %start) applies stablehlo.add across dimensions = [0]
    : (tensor<4096x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %s : tensor<512xf32>
}
