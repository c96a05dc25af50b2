// RUN: hloforge opt %s --pass=decompose-fft | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.fft
// CHECK: stablehlo.real %arg0
// CHECK: stablehlo.imag %arg0
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.dot_general
// CHECK: [[Y:%.+]] = stablehlo.complex
// CHECK: return [[Y]]
func.func @main(%x: tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>> {
  %y = stablehlo.fft %x, type = FFT, length = [1000] : (tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>>
  return %y : tensor<64x1000xcomplex<f32>>
}
