// RUN: hloforge opt %s --pass=merge-branches | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = "stablehlo.case"(%arg1) ({
// CHECK-NEXT: stablehlo.return %arg0
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.negate %arg0
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }) : (tensor<i32>) -> tensor<4xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<4xf32>
  }, {
    %a = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    %b = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
