// RUN: hloforge opt %s --pass=decompose-logarithm | filecheck %s

// Of f64 by the bits: 2^k by a shift of 52, then f / (2 + f) and a series that begins with 2/3.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.log {{.*}}f64>
// CHECK: [[BITS:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xf64>) -> tensor<4xui64>
// CHECK: stablehlo.constant dense<52>
// CHECK: stablehlo.constant dense<2.000000e+00> : tensor<4xf64>
// CHECK: [[TWO:%.+]] = stablehlo.add {{.*}} : tensor<4xf64>
// CHECK: [[S:%.+]] = stablehlo.divide {{%.+}}, [[TWO]]
// CHECK: stablehlo.constant dense<0.666666666666
// CHECK: stablehlo.constant dense<1.17549435E-38>
// CHECK: [[Z:%.+]] = stablehlo.select {{%.+}}, {{%.+}}, %arg1 : tensor<4xi1>, tensor<4xf32>
// CHECK: [[M:%.+]] = stablehlo.log [[Z]] {hloforge.normal} : tensor<4xf32>
// CHECK-NOT: stablehlo.log {{.*}}f64>
// CHECK: return {{%.+}}, [[M]]
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf32>) -> (tensor<4xf64>, tensor<4xf32>) {
  %l = stablehlo.log %x : tensor<4xf64>
  %m = stablehlo.log %y : tensor<4xf32>
  return %l, %m : tensor<4xf64>, tensor<4xf32>
}
