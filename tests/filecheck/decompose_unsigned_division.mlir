// RUN: hloforge opt %s --pass=decompose-unsigned-division | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.divide {{.*}}ui32>
// CHECK: stablehlo.divide {{%.+}}, {{%.+}} : tensor<4xi32>
// CHECK: stablehlo.select
// CHECK: return {{%.+}} : tensor<4xui32>
func.func @main(%x: tensor<4xui32>, %y: tensor<4xui32>) -> tensor<4xui32> {
  %q = stablehlo.divide %x, %y : tensor<4xui32>
  return %q : tensor<4xui32>
}
