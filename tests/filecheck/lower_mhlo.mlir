// RUN: hloforge opt %s --pass=lower-mhlo | filecheck %s --implicit-check-not=mhlo.

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = chlo.acosh %arg0 : tensor<4xf32> -> tensor<4xf32>
// CHECK: [[V:%.+]], [[I:%.+]] = chlo.top_k(%arg0, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
// CHECK: [[S:%.+]] = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>
// CHECK: [[N:%.+]] = stablehlo.custom_call @hloforge.rng_state() {{.*}}delta = 1{{.*}}number = 0
// CHECK: return [[R]], [[V]], [[S]], [[N]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<4xf32>, tensor<2xui64>) {
  %r = mhlo.acosh %x : tensor<4xf32>
  %v:2 = mhlo.topk(%x, k = 2, largest = true) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  %s = stablehlo.custom_call @mhlo.erf(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %n = mhlo.xla.rng_get_and_update_state {delta = 1 : i64}
  return %r, %v#0, %s, %n : tensor<4xf32>, tensor<2xf32>, tensor<4xf32>, tensor<2xui64>
}
