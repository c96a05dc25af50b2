// RUN: hloforge opt %s --pass=decompose-bit-widths | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[N:%.+]] = stablehlo.bitcast_convert %{{.+}} : (tensor<5xf32>) -> tensor<5xui32>
// CHECK: [[BROADCAST:%.+]] = stablehlo.broadcast_in_dim [[N]], dims = [0] : (tensor<5xui32>) -> tensor<5x4xui32>
// CHECK: stablehlo.iota dim = 1 : tensor<5x4xui32>
// CHECK: [[M:%.+]] = stablehlo.shift_right_logical [[BROADCAST]], %{{.+}} : tensor<5x4xui32>
// CHECK: [[B:%.+]] = stablehlo.convert [[M]] : (tensor<5x4xui32>) -> tensor<5x4xui8>
// CHECK: stablehlo.shift_left
// CHECK: stablehlo.reduce({{.+}}) applies stablehlo.or across dimensions = [1]
func.func @main(%x: tensor<5xf32>, %y: tensor<5x4xui8>) -> (tensor<5x4xui8>, tensor<5xf32>) {
  %b = stablehlo.bitcast_convert %x : (tensor<5xf32>) -> tensor<5x4xui8>
  %r = stablehlo.bitcast_convert %y : (tensor<5x4xui8>) -> tensor<5xf32>
  return %b, %r : tensor<5x4xui8>, tensor<5xf32>
}
