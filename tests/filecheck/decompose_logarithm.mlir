// RUN: hloforge opt %s --pass=decompose-logarithm | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.log {{.*}}f64>
// CHECK: stablehlo.bitcast_convert %arg0 : (tensor<4xf64>)
// CHECK: [[LIMIT:%.+]] = stablehlo.constant dense<1.17549435E-38>
// CHECK: [[Z:%.+]] = stablehlo.select {{%.+}}, {{%.+}}, %arg1 : tensor<4xi1>, tensor<4xf32>
// CHECK: [[M:%.+]] = stablehlo.log [[Z]] {hloforge.normal} : tensor<4xf32>
// CHECK: return {{%.+}}, [[M]]
func.func @main(%x: tensor<4xf64>, %y: tensor<4xf32>) -> (tensor<4xf64>, tensor<4xf32>) {
  %l = stablehlo.log %x : tensor<4xf64>
  %m = stablehlo.log %y : tensor<4xf32>
  return %l, %m : tensor<4xf64>, tensor<4xf32>
}
