// RUN: hloforge opt %s --pass=refine-dynamism | filecheck %s --implicit-check-not=stablehlo.dynamic_broadcast_in_dim

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>
// CHECK: return
func.func @main(%x: tensor<2xf32>) -> tensor<?x?xf32> {
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %two = stablehlo.constant dense<2> : tensor<1xi64>
  %s = stablehlo.concatenate %one, %two, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
