// RUN: hloforge opt %s --pass=sink-transposes | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[Z:%.+]] = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [1]
// CHECK-NEXT: return [[Z]]
func.func @main(%x: tensor<32x512xf32>, %w: tensor<768x512xf32>) -> tensor<768x32xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<768x512xf32>) -> tensor<512x768xf32>
  %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
    : (tensor<32x512xf32>, tensor<512x768xf32>) -> tensor<32x768xf32>
  %z = stablehlo.transpose %y, dims = [1, 0] : (tensor<32x768xf32>) -> tensor<768x32xf32>
  return %z : tensor<768x32xf32>
}
