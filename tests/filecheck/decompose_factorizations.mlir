// RUN: hloforge opt %s --keep-marks --pass=decompose-factorizations | filecheck %s --implicit-check-not=stablehlo.custom_call

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.sqrt
// CHECK: return {{%.+}}, {{%.+}} : tensor<1x100x100xf32>, tensor<1xi32>
func.func @main(%a: tensor<1x100x100xf32>) -> (tensor<1x100x100xf32>, tensor<1xi32>) {
  %r:2 = stablehlo.custom_call @hloforge.cholesky(%a) {api_version = 4 : i32, backend_config = {lower = true}}
    : (tensor<1x100x100xf32>) -> (tensor<1x100x100xf32>, tensor<1xi32>)
  return %r#0, %r#1 : tensor<1x100x100xf32>, tensor<1xi32>
}
