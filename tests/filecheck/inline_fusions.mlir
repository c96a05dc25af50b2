// RUN: hloforge opt %s --pass=inline-fusions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[R:%.+]] = stablehlo.sine %arg0 : tensor<4xf32>
// CHECK-NEXT: return [[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "mhlo.fusion"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %0 = stablehlo.sine %a : tensor<4xf32>
    mhlo.return %0 : tensor<4xf32>
  }) {fusion_kind = #mhlo<fusion_kind kLoop>} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
