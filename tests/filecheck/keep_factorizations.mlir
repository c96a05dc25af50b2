// RUN: hloforge opt %s --pass=keep-factorizations | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.pad
// CHECK: [[F:%.+]]:2 = stablehlo.custom_call @hloforge.strips.cholesky([[P:%.+]]) {{.*}}lower = true{{.*}} : (tensor<1x112x112xf32>) -> (tensor<1x112x112xf32>, tensor<1x1xi32>)
// CHECK: [[L:%.+]] = stablehlo.slice [[F]]#0 [0:1, 0:100, 0:100]
// CHECK: [[R:%.+]] = stablehlo.reshape [[L]]
// CHECK: return [[R]]
func.func @main(%a: tensor<100x100xf32>) -> tensor<100x100xf32> {
  %l = stablehlo.cholesky %a, lower = true : tensor<100x100xf32>
  return %l : tensor<100x100xf32>
}
