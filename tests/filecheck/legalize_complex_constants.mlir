// RUN: hloforge opt %s --pass=legalize-complex-constants | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[RE:%.+]] = stablehlo.constant dense<1.000000e+00> : tensor<4xf64>
// CHECK-DAG: [[IM:%.+]] = stablehlo.constant dense<2.000000e+00> : tensor<4xf64>
// CHECK: [[H:%.+]] = stablehlo.optimization_barrier [[IM]]
// CHECK: [[C:%.+]] = stablehlo.complex [[RE]], [[H]] : tensor<4xcomplex<f64>>
// CHECK: return [[C]]
func.func @main() -> tensor<4xcomplex<f64>> {
  %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f64>>
  return %c : tensor<4xcomplex<f64>>
}
