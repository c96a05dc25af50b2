// RUN: hloforge opt %s --pass=fold-known-sizes | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[N:%.+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK: [[START:%.+]] = stablehlo.reshape %{{.+}} : (tensor<1xi64>) -> tensor<i64>
// CHECK: [[PART:%.+]] = stablehlo.dynamic_slice %arg1, [[START]], sizes = [2] : (tensor<5xf32>, tensor<i64>) -> tensor<2xf32>
// CHECK: return [[N]], [[PART]]
func.func @main(%x: tensor<2x3xf32>, %y: tensor<5xf32>, %i: tensor<1xi64>, %end: tensor<1xi64>) -> (tensor<i32>, tensor<2xf32>) {
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  %step = stablehlo.constant dense<1> : tensor<1xi64>
  %part = stablehlo.real_dynamic_slice %y, %i, %end, %step
    : (tensor<5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  return %n, %part : tensor<i32>, tensor<2xf32>
}
