// RUN: hloforge opt %s --pass=decompose-fft | filecheck %s --implicit-check-not=stablehlo.fft

// 1000 = 5 * 5 * 5 * 8: a stage splits off a factor, multiplies by its matrix and by the roots of unity.
// CHECK-LABEL: func.func @main
// CHECK: [[RE:%.+]] = stablehlo.real %arg0
// CHECK: [[IM:%.+]] = stablehlo.imag %arg0
// CHECK: [[X:%.+]] = stablehlo.reshape [[RE]] : (tensor<64x1000xf32>) -> tensor<64x5x200xf32>
// CHECK: stablehlo.dot_general {{%.+}}, [[X]], contracting_dims = [1] x [1] : (tensor<5x5xf32>, tensor<64x5x200xf32>) -> tensor<5x64x200xf32>
// CHECK: stablehlo.multiply {{.*}} : tensor<5x64x200xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<5x5xf32>, tensor<320x5x40xf32>) -> tensor<5x320x40xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<5x5xf32>, tensor<1600x5x8xf32>) -> tensor<5x1600x8xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<8x8xf32>, tensor<8000x8
// CHECK: stablehlo.complex
// CHECK: return {{%.+}} : tensor<64x1000xcomplex<f32>>
func.func @main(%x: tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>> {
  %y = stablehlo.fft %x, type = FFT, length = [1000] : (tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>>
  return %y : tensor<64x1000xcomplex<f32>>
}
