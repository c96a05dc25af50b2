// RUN: hloforge opt %s --pass=fill-empty-parts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: stablehlo.broadcast_in_dim {{.*}} : (tensor<f32>) -> tensor<3x2xf32>
// CHECK-NOT: stablehlo.gather
func.func @main(%x: tensor<0x2xf32>, %i: tensor<3xi32>) -> tensor<3x2xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 0, 2>}>
    : (tensor<0x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// CHECK-LABEL: func.func private @transform
// CHECK-NOT: stablehlo.fft
func.func private @transform(%x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %r = stablehlo.fft %x, type = FFT, length = [0] : (tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>
  return %r : tensor<3xcomplex<f32>>
}
