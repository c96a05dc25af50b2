// RUN: hloforge opt %s --pass=legalize-narrow-floats | filecheck %s

// CHECK: func.func @main(%arg0: tensor<3xui8>{{.*}}, %arg1: tensor<3xui8>{{.*}}) -> tensor<3xui8>
// CHECK-NOT: f8E4M3FN
// CHECK: [[S:%.+]] = stablehlo.add {{%.+}}, {{%.+}} : tensor<3xf32>
// CHECK: return {{%.+}} : tensor<3xui8>
func.func @main(%x: tensor<3xf8E4M3FN>, %y: tensor<3xf8E4M3FN>) -> tensor<3xf8E4M3FN> {
  %r = stablehlo.add %x, %y : tensor<3xf8E4M3FN>
  return %r : tensor<3xf8E4M3FN>
}
