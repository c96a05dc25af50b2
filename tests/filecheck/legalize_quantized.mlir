// RUN: hloforge opt %s --pass=legalize-quantized | filecheck %s --implicit-check-not=quant.uniform

// CHECK: func.func @main(%arg0: tensor<4xi8>{{.*}}, %arg1: tensor<4xi8>{{.*}}) -> tensor<4xi8>
// CHECK: stablehlo.constant dense<-20> : tensor<i32>
// CHECK: stablehlo.subtract
// CHECK: stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK: [[A:%.+]] = stablehlo.multiply {{%.+}} : tensor<4xf32>
// CHECK: stablehlo.subtract
// CHECK: [[B:%.+]] = stablehlo.multiply {{%.+}} : tensor<4xf32>
// CHECK: [[S:%.+]] = stablehlo.add [[A]], [[B]] : tensor<4xf32>
// CHECK: [[Q:%.+]] = stablehlo.divide [[S]], {{%.+}} : tensor<4xf32>
// CHECK: [[T:%.+]] = stablehlo.add [[Q]], {{%.+}} : tensor<4xf32>
// CHECK: stablehlo.constant dense<-1.280000e+02>
// CHECK: [[L:%.+]] = stablehlo.maximum [[T]]
// CHECK: stablehlo.constant dense<1.270000e+02>
// CHECK: [[C:%.+]] = stablehlo.minimum [[L]]
// CHECK: [[N:%.+]] = stablehlo.round_nearest_even [[C]]
// CHECK: [[R:%.+]] = stablehlo.convert [[N]] : (tensor<4xf32>) -> tensor<4xi8>
// CHECK: return [[R]]
func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.5:-20>>, %y: tensor<4x!quant.uniform<i8:f32, 0.5:-20>>)
    -> tensor<4x!quant.uniform<i8:f32, 0.5:-20>> {
  %r = stablehlo.add %x, %y : tensor<4x!quant.uniform<i8:f32, 0.5:-20>>
  return %r : tensor<4x!quant.uniform<i8:f32, 0.5:-20>>
}
