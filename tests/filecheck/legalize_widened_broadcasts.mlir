// RUN: hloforge opt %s --pass=legalize-widened-broadcasts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[W:%.+]] = stablehlo.convert %arg0 : (tensor<2x64xbf16>) -> tensor<2x64xf32>
// CHECK: [[B:%.+]] = stablehlo.broadcast_in_dim [[W]], dims = [0, 2] : (tensor<2x64xf32>) -> tensor<2x4x64xf32>
// Narrower floats are fewer bytes.
// CHECK: [[N:%.+]] = stablehlo.broadcast_in_dim %arg1
// CHECK: [[C:%.+]] = stablehlo.convert [[N]] : (tensor<4x64xf32>) -> tensor<4x64xbf16>
// CHECK: return [[B]], [[C]]
func.func @main(%x: tensor<2x64xbf16>, %y: tensor<64xf32>) -> (tensor<2x4x64xf32>, tensor<4x64xbf16>) {
  %b = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<2x64xbf16>) -> tensor<2x4x64xbf16>
  %r = stablehlo.convert %b : (tensor<2x4x64xbf16>) -> tensor<2x4x64xf32>
  %n = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<64xf32>) -> tensor<4x64xf32>
  %c = stablehlo.convert %n : (tensor<4x64xf32>) -> tensor<4x64xbf16>
  return %r, %c : tensor<2x4x64xf32>, tensor<4x64xbf16>
}
