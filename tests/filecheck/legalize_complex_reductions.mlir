// RUN: hloforge opt %s --pass=legalize-complex-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S:%.+]] = stablehlo.reduce(%arg0 init: %{{.+}}) applies stablehlo.add across dimensions = [0]
// CHECK: [[H:%.+]] = stablehlo.optimization_barrier [[S]]
// CHECK: [[R:%.+]] = stablehlo.broadcast_in_dim [[H]], dims = []
// CHECK: return [[R]]
func.func @main(%x: tensor<40xcomplex<f64>>) -> tensor<3xcomplex<f64>> {
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<40xcomplex<f64>>, tensor<complex<f64>>) -> tensor<complex<f64>>
  %r = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  return %r : tensor<3xcomplex<f64>>
}
