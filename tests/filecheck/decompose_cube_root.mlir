// RUN: hloforge opt %s --pass=decompose-cube-root | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.cbrt
// CHECK: stablehlo.bitcast_convert
// CHECK: stablehlo.divide
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %r = stablehlo.cbrt %x : tensor<4xf64>
  return %r : tensor<4xf64>
}
