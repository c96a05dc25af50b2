// RUN: hloforge opt %s --pass=legalize-half-factorizations | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = stablehlo.convert %arg0 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
// CHECK: [[W:%.+]] = stablehlo.cholesky [[A]], lower = true : tensor<4x4xf32>
// CHECK: [[L:%.+]] = stablehlo.convert [[W]] : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK: "stablehlo.triangular_solve"({{.+}}) {{.+}} : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK: stablehlo.convert %{{.+}} : (tensor<4x2xf32>) -> tensor<4x2xbf16>
func.func @main(%a: tensor<4x4xbf16>, %b: tensor<4x2xbf16>) -> tensor<4x2xbf16> {
  %l = "stablehlo.cholesky"(%a) {lower = true} : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %x = "stablehlo.triangular_solve"(%l, %b) {left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<4x4xbf16>, tensor<4x2xbf16>) -> tensor<4x2xbf16>
  return %x : tensor<4x2xbf16>
}
