// RUN: hloforge opt %s --pass=legalize-constant-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[ZERO:%.+]] = stablehlo.constant dense<0> : tensor<ui8>
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[ZERO]]
// CHECK: [[HIDDEN:%.+]] = stablehlo.broadcast_in_dim [[B]], dims = []
// CHECK: [[M:%.+]] = stablehlo.compare GE, %arg0, [[HIDDEN]] : (tensor<5xui8>, tensor<5xui8>) -> tensor<5xi1>
// CHECK: [[N:%.+]] = stablehlo.convert [[M]]
// CHECK: stablehlo.reduce([[N]] init:
func.func @main(%x: tensor<5xui8>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<5xui8>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %m = stablehlo.compare GE, %x, %zero : (tensor<5xui8>, tensor<5xui8>) -> tensor<5xi1>
  %n = stablehlo.convert %m : (tensor<5xi1>) -> tensor<5xi32>
  %s = stablehlo.reduce(%n init: %i) applies stablehlo.add across dimensions = [0]
    : (tensor<5xi32>, tensor<i32>) -> tensor<i32>
  return %s : tensor<i32>
}
