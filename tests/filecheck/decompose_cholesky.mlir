// RUN: hloforge opt %s --pass=decompose-cholesky | filecheck %s --implicit-check-not=stablehlo.cholesky

// Blocks of 64 rows: what the rows above leave of a block, then row by row.
// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = stablehlo.reshape %arg0 : (tensor<512x512xf64>) -> tensor<1x512x512xf64>
// CHECK: stablehlo.while([[J:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[U:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}},
// CHECK: [[BLOCK:%.+]] = stablehlo.constant dense<64> : tensor<i32>
// CHECK: stablehlo.add [[J]], [[BLOCK]]
// CHECK: [[P:%.+]] = stablehlo.dynamic_slice [[A]], {{.*}} sizes = [1, 64, 512]
// CHECK: stablehlo.while({{.*}} = [[P]])
// CHECK: [[D:%.+]] = stablehlo.dot_general
// CHECK: stablehlo.subtract {{%.+}}, [[D]]
// CHECK: stablehlo.while(
// CHECK: [[E:%.+]] = stablehlo.dot_general
// CHECK: stablehlo.subtract {{%.+}}, {{%.+}}
// CHECK: stablehlo.sqrt
// CHECK: stablehlo.divide
// CHECK: stablehlo.dynamic_update_slice [[U]],
// CHECK: return {{%.+}} : tensor<512x512xf64>
func.func @main(%a: tensor<512x512xf64>) -> tensor<512x512xf64> {
  %u = stablehlo.cholesky %a, lower = false : tensor<512x512xf64>
  return %u : tensor<512x512xf64>
}
