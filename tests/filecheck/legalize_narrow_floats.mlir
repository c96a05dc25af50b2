// RUN: hloforge opt %s --pass=legalize-narrow-floats | filecheck %s --implicit-check-not=f8E4M3FN

// CHECK: func.func @main(%arg0: tensor<3xui8>{{.*}}, %arg1: tensor<3xui8>{{.*}}) -> tensor<3xui8>
// CHECK: stablehlo.convert %arg0 : (tensor<3xui8>) -> tensor<3xui32>
// CHECK: [[A:%.+]] = stablehlo.or
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert [[A]] : (tensor<3xui32>) -> tensor<3xf32>
// CHECK: stablehlo.convert %arg1 : (tensor<3xui8>) -> tensor<3xui32>
// CHECK: [[B:%.+]] = stablehlo.or
// CHECK: [[Y:%.+]] = stablehlo.bitcast_convert [[B]] : (tensor<3xui32>) -> tensor<3xf32>
// CHECK: [[S:%.+]] = stablehlo.add [[X]], [[Y]] : tensor<3xf32>
// CHECK: stablehlo.bitcast_convert [[S]] : (tensor<3xf32>) -> tensor<3xui32>
// CHECK: [[R:%.+]] = stablehlo.convert {{%.+}} : (tensor<3xui32>) -> tensor<3xui8>
// CHECK: return [[R]]
func.func @main(%x: tensor<3xf8E4M3FN>, %y: tensor<3xf8E4M3FN>) -> tensor<3xf8E4M3FN> {
  %r = stablehlo.add %x, %y : tensor<3xf8E4M3FN>
  return %r : tensor<3xf8E4M3FN>
}
