// RUN: hloforge opt %s --pass=dispatch-fft | filecheck %s --implicit-check-not=stablehlo.fft

// A dispatch of rows, whose stages are loops, then one of columns; a complex number is two real ones inside.
// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = "flow.tensor.bitcast"(%arg0) {{.*}} -> tensor<64x2000xf32>
// CHECK: [[R:%.+]] = "flow.dispatch.workgroups"({{.*}}[[X]], {{.*}}) ({
// CHECK: scf.for
// CHECK: scf.for
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9]}}
// CHECK: [[C:%.+]] = "flow.tensor.bitcast"([[R]])
// CHECK: [[Z:%.+]] = "flow.tensor.bitcast"([[C]])
// CHECK: [[W:%.+]]{{.*}} = "flow.dispatch.workgroups"({{.*}}[[Z]], {{.*}}) ({
// CHECK: scf.for
// CHECK: scf.for
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9]}}
// CHECK-NOT: "flow.dispatch.workgroups"
// CHECK: [[Y:%.+]] = "flow.tensor.bitcast"([[W]]{{.*}}) {{.*}} -> tensor<64x1000xcomplex<f32>>
// CHECK: return [[Y]]
func.func @main(%x: tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>> {
  %y = stablehlo.fft %x, type = FFT, length = [64, 1000]
    : (tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>>
  return %y : tensor<64x1000xcomplex<f32>>
}
