// RUN: hloforge opt %s --pass=lower-bitcast | filecheck %s --implicit-check-not=mhlo.bitcast

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %r = "mhlo.bitcast"(%x) {source_layout = dense<[0, 1]> : tensor<2xindex>,
    result_layout = dense<[1, 0]> : tensor<2xindex>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
