// RUN: hloforge opt %s --pass=decompose-leading-zeros | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.count_leading_zeros {{.*}}i64>
// CHECK: [[UP:%.+]] = stablehlo.count_leading_zeros {{%.+}} : tensor<4x{{u?}}i32>
// CHECK: [[LOW:%.+]] = stablehlo.count_leading_zeros {{%.+}} : tensor<4x{{u?}}i32>
// CHECK: stablehlo.select
// CHECK: return {{%.+}} : tensor<4xi64>
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %n = stablehlo.count_leading_zeros %x : tensor<4xi64>
  return %n : tensor<4xi64>
}
