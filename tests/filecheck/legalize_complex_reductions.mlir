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

// CHECK-LABEL: func.func @windows
// CHECK: [[W:%.+]]:2 = "stablehlo.reduce_window"
// CHECK-DAG: [[RE:%.+]] = stablehlo.optimization_barrier [[W]]#0
// CHECK-DAG: [[IM:%.+]] = stablehlo.optimization_barrier [[W]]#1
// CHECK: stablehlo.complex [[RE]], [[IM]]
func.func @windows(%x: tensor<32xf32>, %y: tensor<32xf32>) -> tensor<32xcomplex<f32>> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %z, %z) <{padding = dense<[[31, 0]]> : tensor<1x2xi64>,
    window_dimensions = array<i64: 32>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
      %1 = stablehlo.add %a, %c : tensor<f32>
      %2 = stablehlo.add %b, %d : tensor<f32>
      stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) : (tensor<32xf32>, tensor<32xf32>, tensor<f32>, tensor<f32>) -> (tensor<32xf32>, tensor<32xf32>)
  %3 = stablehlo.complex %0#0, %0#1 : tensor<32xcomplex<f32>>
  return %3 : tensor<32xcomplex<f32>>
}
