// RUN: hloforge opt %s --pass=decompose-single-replica | filecheck %s --implicit-check-not=stablehlo.all_reduce

// CHECK-LABEL: func.func @main
// CHECK: [[ID:%.+]] = stablehlo.constant dense<0> : tensor<ui32>
// CHECK: return [[ID]], %arg0
func.func @main(%x: tensor<4xf32>) -> (tensor<ui32>, tensor<4xf32>) {
  %id = stablehlo.replica_id : tensor<ui32>
  %y = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %id, %y : tensor<ui32>, tensor<4xf32>
}
