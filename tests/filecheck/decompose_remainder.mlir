// RUN: hloforge opt %s --pass=decompose-remainder | filecheck %s

// Exponents leave the bits by a shift of 52; powers are taken modulo y by six squarings, each a product and quotient.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.remainder {{.*}}f64>
// CHECK: [[X:%.+]] = stablehlo.abs %arg0
// CHECK: [[Y:%.+]] = stablehlo.abs %arg1
// CHECK: stablehlo.constant dense<52>
// CHECK: stablehlo.constant dense<4503599627370495>
// CHECK: stablehlo.constant dense<52>
// CHECK: stablehlo.constant dense<4503599627370495>
// CHECK: [[DISTANCE:%.+]] = stablehlo.subtract {{.*}} : tensor<4xi64>
// CHECK-COUNT-6: stablehlo.divide
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
  %r = stablehlo.remainder %x, %y : tensor<4xf64>
  return %r : tensor<4xf64>
}
