// RUN: hloforge opt %s --pass=slice-operands | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[P:%.+]] = stablehlo.slice %arg0 [0:8, 0:128]
// CHECK-DAG: [[S:%.+]] = stablehlo.slice %arg1 [0:128]
// CHECK-DAG: [[B:%.+]] = stablehlo.broadcast_in_dim [[S]], dims = [1]
// CHECK: [[I:%.+]] = stablehlo.add [[P]], [[B]] : tensor<8x128xf32>
// CHECK: stablehlo.slice %arg0 [0:8, 128:256]
// CHECK: [[F:%.+]] = stablehlo.add {{%.+}} : tensor<8x128xf32>
// CHECK-NOT: tensor<8x512xf32>
// CHECK: return
func.func @main(%product: tensor<8x512xf32>, %bias: tensor<512xf32>) -> (tensor<8x128xf32>, tensor<8x128xf32>) {
  %b = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<512xf32>) -> tensor<8x512xf32>
  %gates = stablehlo.add %product, %b : tensor<8x512xf32>
  %i = stablehlo.slice %gates [0:8, 0:128] : (tensor<8x512xf32>) -> tensor<8x128xf32>
  %f = stablehlo.slice %gates [0:8, 128:256] : (tensor<8x512xf32>) -> tensor<8x128xf32>
  return %i, %f : tensor<8x128xf32>, tensor<8x128xf32>
}
