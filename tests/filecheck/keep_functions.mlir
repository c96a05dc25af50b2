// RUN: hloforge opt %s --pass=keep-functions | filecheck %s --implicit-check-not=chlo.erf

// What code generation has code for is a call that CHLO's expansion does not see; the rest stays.
// CHECK-LABEL: func.func @main
// CHECK: [[E:%.+]] = stablehlo.custom_call @hloforge.kept.erf(%{{.+}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: [[C:%.+]] = stablehlo.custom_call @hloforge.kept.erfc([[E]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: stablehlo.custom_call @hloforge.kept.erf_inv([[C]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: chlo.lgamma
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  %c = chlo.erfc %e : tensor<4xf32> -> tensor<4xf32>
  %i = chlo.erf_inv %c : tensor<4xf32> -> tensor<4xf32>
  %r = chlo.lgamma %i : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
