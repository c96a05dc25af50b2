// RUN: hloforge opt %s --pass=legalize-float-to-integer | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: stablehlo.constant dense<-1.280000e+02>
// CHECK-DAG: stablehlo.constant dense<1.270000e+02>
// CHECK: stablehlo.convert {{.*}} : (tensor<4xf32>) -> tensor<4xi8>
// CHECK-DAG: stablehlo.constant dense<127> : tensor<4xi8>
// CHECK-DAG: stablehlo.constant dense<-128> : tensor<4xi8>
// CHECK: stablehlo.compare NE, %arg0, %arg0
// CHECK: return
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
