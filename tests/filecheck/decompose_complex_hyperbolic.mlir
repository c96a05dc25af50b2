// RUN: hloforge opt %s --pass=decompose-complex-hyperbolic | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[A:%.+]] = stablehlo.real %arg0
// CHECK-DAG: [[B:%.+]] = stablehlo.imag %arg0
// CHECK-DAG: [[N:%.+]] = stablehlo.negate [[B]]
// CHECK: [[T:%.+]] = stablehlo.complex [[N]], [[A]]
// CHECK: [[S:%.+]] = stablehlo.sine [[T]]
// CHECK: stablehlo.cosine
// Real numbers stay.
// CHECK: chlo.sinh %arg1
func.func @main(%z: tensor<4xcomplex<f32>>, %x: tensor<4xf32>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<4xf32>) {
  %s = chlo.sinh %z : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  %c = chlo.cosh %z : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  %r = chlo.sinh %x : tensor<4xf32> -> tensor<4xf32>
  return %s, %c, %r : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<4xf32>
}
