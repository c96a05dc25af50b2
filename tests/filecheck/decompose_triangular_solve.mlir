// RUN: hloforge opt %s --pass=decompose-triangular-solve | filecheck %s --implicit-check-not=stablehlo.triangular_solve

// Blocks of 64 rows: what the rows above leave of a block, then row by row.
// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = stablehlo.reshape %arg0 : (tensor<128x128xf32>) -> tensor<1x128x128xf32>
// CHECK: [[B:%.+]] = stablehlo.reshape %arg1 : (tensor<128x4xf32>) -> tensor<1x128x4xf32>
// CHECK: stablehlo.while([[J:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[X:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}})
// CHECK: stablehlo.dynamic_slice [[A]], {{.*}} sizes = [1, 64, 128]
// CHECK: [[R:%.+]] = stablehlo.dynamic_slice [[B]], {{.*}} sizes = [1, 64, 4]
// CHECK: stablehlo.while({{.*}} = [[R]])
// CHECK: [[D:%.+]] = stablehlo.dot_general
// CHECK: stablehlo.subtract {{%.+}}, [[D]]
// CHECK: stablehlo.while(
// CHECK: [[E:%.+]] = stablehlo.dot_general
// CHECK: [[L:%.+]] = stablehlo.subtract
// CHECK: stablehlo.divide [[L]]
// CHECK: stablehlo.dynamic_update_slice [[X]],
// CHECK: return {{%.+}} : tensor<128x4xf32>
func.func @main(%a: tensor<128x128xf32>, %b: tensor<128x4xf32>) -> tensor<128x4xf32> {
  %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<128x128xf32>, tensor<128x4xf32>) -> tensor<128x4xf32>
  return %x : tensor<128x4xf32>
}
