// RUN: hloforge opt %s --pass=legalize-bf16-products | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[A:%.+]] = stablehlo.convert %arg0 : (tensor<64x64xbf16>) -> tensor<64x64xf32>
// CHECK-DAG: [[B:%.+]] = stablehlo.convert %arg1 : (tensor<64x64xbf16>) -> tensor<64x64xf32>
// CHECK-DAG: [[X:%.+]] = stablehlo.optimization_barrier [[A]]
// CHECK-DAG: [[Y:%.+]] = stablehlo.optimization_barrier [[B]]
// CHECK: [[P:%.+]] = stablehlo.dot_general [[X]], [[Y]], contracting_dims = [1] x [0]
// CHECK-SAME: (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK: [[H:%.+]] = stablehlo.optimization_barrier [[P]]
// CHECK: [[R:%.+]] = stablehlo.convert [[H]] : (tensor<64x64xf32>) -> tensor<64x64xbf16>
// CHECK: return [[R]]
func.func @main(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %r = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  return %r : tensor<64x64xbf16>
}
