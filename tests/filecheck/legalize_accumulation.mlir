// RUN: hloforge opt %s --pass=legalize-accumulation | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]{{.*}} : (tensor<64x512xbf16>, tensor<512x64xbf16>) -> tensor<64x64xf32>
// CHECK-NEXT: [[R:%.+]] = stablehlo.convert [[P]] : (tensor<64x64xf32>) -> tensor<64x64xbf16>
// CHECK-NEXT: return [[R]]
func.func @main(%a: tensor<64x512xbf16>, %b: tensor<512x64xbf16>) -> tensor<64x64xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x512xbf16>, tensor<512x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
