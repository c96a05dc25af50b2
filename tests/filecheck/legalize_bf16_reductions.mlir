// RUN: hloforge opt %s --pass=legalize-bf16-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[X:%.+]] = stablehlo.convert %arg0 : (tensor<64x128xbf16>) -> tensor<64x128xf32>
// CHECK-DAG: [[A:%.+]] = stablehlo.convert %arg1 : (tensor<bf16>) -> tensor<f32>
// CHECK: [[W:%.+]] = stablehlo.reduce([[X]] init: [[A]]) applies stablehlo.maximum across dimensions = [1]
// CHECK: [[M:%.+]] = stablehlo.convert [[W]] : (tensor<64xf32>) -> tensor<64xbf16>
// CHECK: return [[M]]
func.func @main(%x: tensor<64x128xbf16>, %a: tensor<bf16>) -> tensor<64xbf16> {
  %m = stablehlo.reduce(%x init: %a) applies stablehlo.maximum across dimensions = [1]
    : (tensor<64x128xbf16>, tensor<bf16>) -> tensor<64xbf16>
  return %m : tensor<64xbf16>
}
