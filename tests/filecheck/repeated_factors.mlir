// RUN: hloforge opt %s --pass=legalize-product-forms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.reshape %{{.+}} : (tensor<32x1x64xf32>) -> tensor<8x4x1x64xf32>
// CHECK: [[S:%.+]] = stablehlo.dot_general [[P]], %{{.+}}, batching_dims = [0] x [0], contracting_dims = [3] x [2] : (tensor<8x4x1x64xf32>, tensor<8x512x64xf32>) -> tensor<8x4x1x512xf32>
// CHECK: stablehlo.reshape [[S]] : (tensor<8x4x1x512xf32>) -> tensor<32x1x512xf32>
func.func @main(%q: tensor<32x1x64xf32>, %k: tensor<8x512x64xf32>) -> tensor<32x1x512xf32> {
  %b = stablehlo.broadcast_in_dim %k, dims = [0, 2, 3] : (tensor<8x512x64xf32>) -> tensor<8x4x512x64xf32>
  %c = stablehlo.reshape %b : (tensor<8x4x512x64xf32>) -> tensor<32x512x64xf32>
  %r = stablehlo.dot_general %q, %c, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<32x1x64xf32>, tensor<32x512x64xf32>) -> tensor<32x1x512xf32>
  return %r : tensor<32x1x512xf32>
}
