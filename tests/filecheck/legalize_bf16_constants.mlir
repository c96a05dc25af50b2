// RUN: hloforge opt %s --pass=legalize-bf16-constants | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[C:%.+]] = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
// CHECK: [[R:%.+]] = stablehlo.convert [[C]] : (tensor<3xf32>) -> tensor<3xbf16>
// CHECK: return [[R]]
func.func @main() -> tensor<3xbf16> {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>
  return %c : tensor<3xbf16>
}
