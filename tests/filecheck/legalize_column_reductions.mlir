// RUN: hloforge opt %s --pass=legalize-column-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[M:%.+]] = stablehlo.reduce(%arg0 init: %{{.+}}) applies stablehlo.maximum across dimensions = [0]
// CHECK: [[H:%.+]] = stablehlo.optimization_barrier [[M]]
// CHECK: [[B:%.+]] = stablehlo.broadcast_in_dim [[H]], dims = [1]
// CHECK: [[R:%.+]] = stablehlo.subtract %arg0, [[B]]
// CHECK: [[S:%.+]] = stablehlo.reduce([[R]] init: %{{.+}}) applies stablehlo.maximum across dimensions = [1]
// CHECK-NEXT: return [[R]], [[S]]
func.func @main(%x: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<64xf32>) {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0]
      : (tensor<64x8xf32>, tensor<f32>) -> tensor<8xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<8xf32>) -> tensor<64x8xf32>
  %r = stablehlo.subtract %x, %b : tensor<64x8xf32>
  %s = stablehlo.reduce(%r init: %least) applies stablehlo.maximum across dimensions = [1]
      : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
  return %r, %s : tensor<64x8xf32>, tensor<64xf32>
}
