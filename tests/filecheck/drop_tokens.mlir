// RUN: hloforge opt %s --pass=drop-tokens | filecheck %s --implicit-check-not=token

// CHECK-LABEL: func.func @main
// CHECK: [[R:%[a-zA-Z0-9_]+]] = stablehlo.while([[A:%[a-zA-Z0-9_]+]] = %arg0) : tensor<3xf32>
// CHECK: stablehlo.return {{%.+}} : tensor<3xf32>
// CHECK: return [[R]] : tensor<3xf32>
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %t = stablehlo.after_all : !stablehlo.token
  %r:2 = stablehlo.while(%a = %x, %b = %t) : tensor<3xf32>, !stablehlo.token
  cond {
    %ten = stablehlo.constant dense<10.0> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %p = stablehlo.compare LT, %s, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %d = stablehlo.add %a, %a : tensor<3xf32>
    %u = stablehlo.after_all %b : !stablehlo.token
    stablehlo.return %d, %u : tensor<3xf32>, !stablehlo.token
  }
  return %r#0 : tensor<3xf32>
}
