// Crashes on the sum of complex numbers that an array repeats, for CUDA.
// cause: One dispatch computes the sum and repeats it, so that the sum is in memory that the block's threads share
// cause: (memref.alloc of complex<f64>). ConvertSharedMemAllocOp in ConvertToLLVM.cpp asks for the width of its element
// cause: type (getIntOrFloatBitWidth), which complex types do not have.
// target: cuda
// fault: crash
func.func @main(%x: tensor<40xcomplex<f64>>) -> tensor<3xcomplex<f64>> {
  %z = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<40xcomplex<f64>>, tensor<complex<f64>>) -> tensor<complex<f64>>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  return %1 : tensor<3xcomplex<f64>>
}
