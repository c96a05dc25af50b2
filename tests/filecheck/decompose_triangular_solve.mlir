// RUN: hloforge opt %s --pass=decompose-triangular-solve | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.triangular_solve
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.divide
// CHECK: return {{%.+}} : tensor<128x4xf32>
func.func @main(%a: tensor<128x128xf32>, %b: tensor<128x4xf32>) -> tensor<128x4xf32> {
  %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<128x128xf32>, tensor<128x4xf32>) -> tensor<128x4xf32>
  return %x : tensor<128x4xf32>
}
