// RUN: hloforge opt %s --pass=legalize-promotions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[W:%.+]] = stablehlo.convert %arg0 : (tensor<4xi8>) -> tensor<4xi32>
// CHECK: [[R:%.+]] = stablehlo.reduce([[W]] init: {{%.+}}) applies stablehlo.add across dimensions = [0] : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xi8>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4xi8>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}
