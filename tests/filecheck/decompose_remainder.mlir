// RUN: hloforge opt %s --pass=decompose-remainder | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.remainder {{.*}}f64>
// CHECK: stablehlo.bitcast_convert
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %r = stablehlo.remainder %x, %y : tensor<4xf64>
  return %r : tensor<4xf64>
}
