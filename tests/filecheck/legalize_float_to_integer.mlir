// RUN: hloforge opt %s --pass=legalize-float-to-integer | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[LOW:%.+]] = stablehlo.constant dense<-1.280000e+02>
// CHECK: [[A:%.+]] = stablehlo.maximum %arg0, [[LOW]]
// CHECK: [[HIGH:%.+]] = stablehlo.constant dense<1.270000e+02>
// CHECK: [[B:%.+]] = stablehlo.minimum [[A]], [[HIGH]]
// CHECK: [[C:%.+]] = stablehlo.convert [[B]] {hloforge.in_range} : (tensor<4xf32>) -> tensor<4xi8>
// CHECK: [[ABOVE:%.+]] = stablehlo.compare GT, %arg0
// CHECK: [[MOST:%.+]] = stablehlo.constant dense<127> : tensor<4xi8>
// CHECK: [[D:%.+]] = stablehlo.select [[ABOVE]], [[MOST]], [[C]]
// CHECK: [[BELOW:%.+]] = stablehlo.compare LT, %arg0
// CHECK: [[LEAST:%.+]] = stablehlo.constant dense<-128> : tensor<4xi8>
// CHECK: [[E:%.+]] = stablehlo.select [[BELOW]], [[LEAST]], [[D]]
// CHECK: [[NAN:%.+]] = stablehlo.compare NE, %arg0, %arg0
// CHECK: [[ZERO:%.+]] = stablehlo.constant dense<0> : tensor<4xi8>
// CHECK: [[R:%.+]] = stablehlo.select [[NAN]], [[ZERO]], [[E]]
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
