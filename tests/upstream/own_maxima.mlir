// A maximum of floats calls fmaxf, which nothing links, in code for WebAssembly.
// cause: The reduction is vectorized, and llvm.maxnum of a vector has no instruction in WebAssembly (f32x4.max returns
// cause: NaN for NaN). LLVM makes calls of fmaxf of it, and IREE links no library of C. A comparison and a selection
// cause: in place of llvm.maxnum compile. Compare iree-org/iree#14187 (closed), the same symbol for f16 on x86-64.
// target: wasm
// fault: compile-error "undefined symbol: fmaxf"
func.func @main(%x: tensor<6x10xf32>) -> tensor<6x10xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<6xf32>) -> tensor<6x10xf32>
  %d = stablehlo.subtract %x, %b : tensor<6x10xf32>
  %e = stablehlo.exponential %d : tensor<6x10xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<6xf32>) -> tensor<6x10xf32>
  %r = stablehlo.divide %e, %t : tensor<6x10xf32>
  return %r : tensor<6x10xf32>
}
