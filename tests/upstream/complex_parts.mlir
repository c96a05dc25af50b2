// A bitcast of complex numbers crashes the compiler.
// cause: BitcastConvertConverter (StableHLO to linalg) calls Type::getIntOrFloatBitWidth for complex element types,
// cause: which have none. It is frame 6 of the stack.
// fault: crash
func.func @main(%x: tensor<4xcomplex<f64>>) -> tensor<4x2xcomplex<f32>> {
  %b = stablehlo.bitcast_convert %x : (tensor<4xcomplex<f64>>) -> tensor<4x2xcomplex<f32>>
  return %b : tensor<4x2xcomplex<f32>>
}
