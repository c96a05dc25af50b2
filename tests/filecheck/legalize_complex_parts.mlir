// RUN: hloforge opt %s --pass=legalize-complex-parts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[RE:%.+]] = stablehlo.real %arg0
// CHECK-DAG: [[IM:%.+]] = stablehlo.imag %arg0
// CHECK: stablehlo.bitcast_convert {{.*}} tensor<4x2x2xf32>
// CHECK: [[B:%.+]] = stablehlo.complex {{%.+}}, {{%.+}} : tensor<4x2xcomplex<f32>>
// CHECK: [[PR:%.+]] = stablehlo.pad {{.*}} low = [1], high = [0], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<5xf64>
// CHECK: [[PI:%.+]] = stablehlo.pad {{.*}} low = [1], high = [0], interior = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<5xf64>
// CHECK: [[P:%.+]] = stablehlo.complex [[PR]], [[PI]] : tensor<5xcomplex<f64>>
// CHECK: return [[B]], [[P]]
func.func @main(%x: tensor<4xcomplex<f64>>) -> (tensor<4x2xcomplex<f32>>, tensor<5xcomplex<f64>>) {
  %v = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f64>>
  %b = stablehlo.bitcast_convert %x : (tensor<4xcomplex<f64>>) -> tensor<4x2xcomplex<f32>>
  %p = stablehlo.pad %x, %v, low = [1], high = [0], interior = [0]
    : (tensor<4xcomplex<f64>>, tensor<complex<f64>>) -> tensor<5xcomplex<f64>>
  return %b, %p : tensor<4x2xcomplex<f32>>, tensor<5xcomplex<f64>>
}
