// RUN: hloforge opt %s --pass=legalize-paddings | filecheck %s

// A part of a complex number that was made of parts is that part.
// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.pad %arg0
// CHECK: [[R:%.+]] = stablehlo.reshape
// CHECK-NEXT: [[B:%.+]] = stablehlo.optimization_barrier [[R]] : tensor<1x31xf32>
// CHECK-NEXT: stablehlo.pad [[B]]
func.func @main(%x: tensor<16xf32>, %y: tensor<31xf32>) -> tensor<1x32xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [0], high = [0], interior = [1] : (tensor<16xf32>, tensor<f32>) -> tensor<31xf32>
  %c = stablehlo.complex %y, %p : tensor<31xcomplex<f32>>
  %i = stablehlo.imag %c : (tensor<31xcomplex<f32>>) -> tensor<31xf32>
  %r = stablehlo.reshape %i : (tensor<31xf32>) -> tensor<1x31xf32>
  %q = stablehlo.pad %r, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<1x31xf32>, tensor<f32>) -> tensor<1x32xf32>
  return %q : tensor<1x32xf32>
}
