// RUN: hloforge opt %s --pass=hold-vectors | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[F:%.+]] = stablehlo.rsqrt %arg0 : tensor<64xf32>
// CHECK-NEXT: [[G:%.+]] = stablehlo.optimization_barrier [[F]]
// CHECK-NEXT: [[B:%.+]] = stablehlo.broadcast_in_dim [[G]], dims = [1] : (tensor<64xf32>) -> tensor<25088x64xf32>
func.func @main(%variance: tensor<64xf32>, %x: tensor<25088x64xf32>) -> tensor<25088x64xf32> {
  %f = stablehlo.rsqrt %variance : tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %f, dims = [1] : (tensor<64xf32>) -> tensor<25088x64xf32>
  %y = stablehlo.multiply %x, %b : tensor<25088x64xf32>
  return %y : tensor<25088x64xf32>
}
