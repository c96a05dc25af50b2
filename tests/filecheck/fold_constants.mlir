// RUN: hloforge opt %s --pass=fold-constants | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[N:%.+]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NOT: stablehlo.convert
// CHECK: [[ALL:%.+]] = stablehlo.broadcast_in_dim [[N]], dims = [] : (tensor<i32>) -> tensor<9xi32>
// CHECK: stablehlo.divide %arg0, [[ALL]] : tensor<9xi32>
func.func @main(%x: tensor<9xi32>) -> tensor<9xi32> {
  %two = stablehlo.constant dense<2> : tensor<i64>
  %n = stablehlo.convert %two : (tensor<i64>) -> tensor<i32>
  %all = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<9xi32>
  %q = stablehlo.divide %x, %all : tensor<9xi32>
  return %q : tensor<9xi32>
}
