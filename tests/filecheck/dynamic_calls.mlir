// RUN: hloforge opt %s --pass=refine-dynamism | filecheck %s --implicit-check-not=stablehlo.custom_call

// CHECK-LABEL: func.func @main
// CHECK: [[V:%.+]], [[I:%.+]] = chlo.top_k(%arg0, k = 3) : tensor<4x9xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)
func.func @main(%x: tensor<4x9xf32>) -> (tensor<4x?xf32>, tensor<4x?xi32>) {
  %k = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
    : (tensor<4x9xf32>, tensor<i32>) -> (tensor<4x?xf32>, tensor<4x?xi32>)
  return %r#0, %r#1 : tensor<4x?xf32>, tensor<4x?xi32>
}
