// RUN: hloforge opt %s --pass=choose-branches | filecheck %s --implicit-check-not=stablehlo.if

// CHECK-LABEL: func.func @main
// CHECK: return %arg1
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %no = stablehlo.constant dense<false> : tensor<i1>
  %r = "stablehlo.if"(%no) ({ stablehlo.return %x : tensor<4xf32> }, { stablehlo.return %y : tensor<4xf32> })
    : (tensor<i1>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
