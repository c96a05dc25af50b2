// RUN: hloforge opt %s --pass=legalize-complex-products | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[RE:%.+]] = stablehlo.dot_general %arg0, %arg1
// CHECK: [[IM:%.+]] = stablehlo.negate [[RE]]
// CHECK: [[PARTS:%.+]]:2 = stablehlo.optimization_barrier [[RE]], [[IM]]
// CHECK: [[Z:%.+]] = stablehlo.complex [[PARTS]]#0, [[PARTS]]#1
// CHECK-COUNT-4: stablehlo.dot_general {{.*}} -> tensor<3x1xf32>
// CHECK: [[V:%.+]] = stablehlo.complex {{%.+}} : tensor<3x1xcomplex<f32>>
// CHECK: return [[Z]], [[V]]
func.func @main(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>, %a: tensor<3x3xcomplex<f32>>, %b: tensor<3x1xcomplex<f32>>)
    -> (tensor<3x3xcomplex<f32>>, tensor<3x1xcomplex<f32>>) {
  %re = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %im = stablehlo.negate %re : tensor<3x3xf32>
  %z = stablehlo.complex %re, %im : tensor<3x3xcomplex<f32>>
  %v = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<3x3xcomplex<f32>>, tensor<3x1xcomplex<f32>>) -> tensor<3x1xcomplex<f32>>
  return %z, %v : tensor<3x3xcomplex<f32>>, tensor<3x1xcomplex<f32>>
}
