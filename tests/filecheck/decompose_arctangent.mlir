// RUN: hloforge opt %s --pass=decompose-arctangent | filecheck %s --implicit-check-not=stablehlo.atan2

// An odd polynomial of the ratio; angles of slope 1 and 1/2, of the octant and of the quadrant are added.
// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = stablehlo.abs %arg0 : tensor<4xf64>
// CHECK: [[X:%.+]] = stablehlo.abs %arg1 : tensor<4xf64>
// CHECK: [[STEEP:%.+]] = stablehlo.compare GT
// CHECK: [[SMALLER:%.+]] = stablehlo.select [[STEEP]], [[X]], [[Y]]
// CHECK: [[LARGER:%.+]] = stablehlo.select [[STEEP]], [[Y]], [[X]]
// CHECK: stablehlo.divide
// CHECK: stablehlo.constant dense<0.333333333333
// CHECK: stablehlo.constant dense<0.785398163397448
// CHECK: stablehlo.constant dense<0.463647609000806
// CHECK: [[QUARTER:%.+]] = stablehlo.constant dense<1.570796326794896
// CHECK: stablehlo.constant dense<3.141592653589793
// CHECK: stablehlo.select [[STEEP]], [[QUARTER]]
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%y: tensor<4xf64>, %x: tensor<4xf64>) -> tensor<4xf64> {
  %a = stablehlo.atan2 %y, %x : tensor<4xf64>
  return %a : tensor<4xf64>
}
