// RUN: not hloforge compile %s -o %t 2>&1 | filecheck %s

// CHECK: audit.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error: custom_call @unheard_of is not supported
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @unheard_of(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
