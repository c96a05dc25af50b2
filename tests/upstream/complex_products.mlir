// A product of a complex matrix and a vector has no SPIR-V.
// cause: The sums of the rows are distributed over subgroups. The part of the result that a workgroup writes is a
// cause: memref.subview of complex<f32>, which the conversion to SPIR-V does not handle. The four products of the real
// cause: and imaginary parts compile.
// target: volta
// fault: compile-error "failed to legalize operation 'memref.subview'"
func.func @main(%x: tensor<64x64xcomplex<f32>>, %y: tensor<64xcomplex<f32>>) -> tensor<64xcomplex<f32>> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<64x64xcomplex<f32>>, tensor<64xcomplex<f32>>) -> tensor<64xcomplex<f32>>
  return %r : tensor<64xcomplex<f32>>
}
