// RUN: hloforge opt %s --pass=decompose-complex-elementwise | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[A:%.+]] = stablehlo.real %arg0
// CHECK-DAG: [[B:%.+]] = stablehlo.imag %arg0
// CHECK-DAG: stablehlo.sine [[A]] : tensor<4xf64>
// CHECK-DAG: stablehlo.cosine [[A]] : tensor<4xf64>
// CHECK-DAG: stablehlo.exponential_minus_one
// CHECK: [[S:%.+]] = stablehlo.complex {{%.+}}, {{%.+}} : tensor<4xcomplex<f64>>
// CHECK: return [[S]]
func.func @main(%z: tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>> {
  %s = stablehlo.sine %z : tensor<4xcomplex<f64>>
  return %s : tensor<4xcomplex<f64>>
}
