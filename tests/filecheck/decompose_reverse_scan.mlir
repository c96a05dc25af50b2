// RUN: hloforge opt %s --pass=decompose-reverse-scan | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = stablehlo.reverse %arg0, dims = [0]
// CHECK: [[S:%.+]]:2 = chlo.scan([[R]]) inits (%arg1) dimension=0
// CHECK-SAME: is_reverse = false
// CHECK: [[Y:%.+]] = stablehlo.reverse [[S]]#0, dims = [0]
// CHECK: return [[Y]], [[S]]#1
func.func @main(%x: tensor<4xf32>, %c: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {
  %0:2 = chlo.scan(%x) inits (%c) dimension=0 attributes {is_reverse = true} {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %t = stablehlo.add %a, %s : tensor<f32>
    stablehlo.return %t, %t : tensor<f32>, tensor<f32>
  } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
}
