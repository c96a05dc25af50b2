// RUN: hloforge opt %s --pass=decompose-cholesky | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.cholesky
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.sqrt
// CHECK: return {{%.+}} : tensor<512x512xf64>
func.func @main(%a: tensor<512x512xf64>) -> tensor<512x512xf64> {
  %u = stablehlo.cholesky %a, lower = false : tensor<512x512xf64>
  return %u : tensor<512x512xf64>
}
