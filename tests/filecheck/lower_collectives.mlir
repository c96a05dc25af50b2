// RUN: hloforge opt %s --keep-marks --pass=lower-collectives | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]]:3 = stablehlo.custom_call @hloforge.gather(%arg0) {{.*}}groups = dense<{{\[\[}}0, 1]]>
// CHECK: [[S:%.+]] = "stablehlo.map"([[X]]#0, [[X]]#1)
// CHECK: stablehlo.add
// CHECK: return [[S]]
module attributes {hloforge.grid = array<i64: 2, 1>} {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %s = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>
    return %s : tensor<3xf32>
  }
}
