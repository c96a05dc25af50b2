// RUN: hloforge opt %s --pass=decompose-arctangent | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.atan2
// CHECK-DAG: stablehlo.abs %arg0 : tensor<4xf64>
// CHECK-DAG: stablehlo.abs %arg1 : tensor<4xf64>
// CHECK: stablehlo.divide
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%y: tensor<4xf64>, %x: tensor<4xf64>) -> tensor<4xf64> {
  %a = stablehlo.atan2 %y, %x : tensor<4xf64>
  return %a : tensor<4xf64>
}
