// RUN: hloforge opt %s --pass=legalize-reduced-negations | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[M:%.+]] = stablehlo.multiply %arg0, {{%.+}} : tensor<16x64xf32>
// CHECK: stablehlo.reduce([[M]] init: {{%.+}}) applies stablehlo.add across dimensions = [1]
// What no reduction reads is negated.
// CHECK: [[K:%.+]] = stablehlo.negate %arg0
// CHECK: return {{%.+}}, [[K]]
func.func @main(%x: tensor<16x64xf32>) -> (tensor<16xf32>, tensor<16x64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %x : tensor<16x64xf32>
  %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x64xf32>, tensor<f32>) -> tensor<16xf32>
  %k = stablehlo.negate %x : tensor<16x64xf32>
  return %s, %k : tensor<16xf32>, tensor<16x64xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK: [[N:%.+]] = stablehlo.negate %arg0 : tensor<16x64xi32>
// CHECK: [[R:%.+]] = stablehlo.reshape [[N]]
// CHECK: stablehlo.reduce([[R]] init: {{%.+}}) applies stablehlo.add
func.func @integers(%x: tensor<16x64xi32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %k = stablehlo.constant dense<-1> : tensor<16x64xi32>
  %m = stablehlo.multiply %x, %k : tensor<16x64xi32>
  %r = stablehlo.reshape %m : (tensor<16x64xi32>) -> tensor<1024xi32>
  %s = stablehlo.reduce(%r init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xi32>, tensor<i32>) -> tensor<i32>
  return %s : tensor<i32>
}
