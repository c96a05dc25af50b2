// RUN: hloforge opt %s --pass=decompose-trigonometric | filecheck %s --implicit-check-not=stablehlo.sine

// The polynomials begin with the -1/6 of the sine's and the 1/24 of the cosine's series.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.bitcast_convert {{.*}} : (tensor<4xf64>) -> tensor<4xui64>
// CHECK: stablehlo.shift_right_logical {{.*}} : tensor<4xui64>
// CHECK-DAG: stablehlo.constant dense<-0.16666666666666
// CHECK-DAG: stablehlo.constant dense<0.041666666666666
// CHECK: stablehlo.select
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %s = stablehlo.sine %x : tensor<4xf64>
  return %s : tensor<4xf64>
}
