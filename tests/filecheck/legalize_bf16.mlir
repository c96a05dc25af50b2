// RUN: hloforge opt %s --pass=legalize-bf16 | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.convert %arg0 : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: [[M:%.+]] = stablehlo.convert %arg1 : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: [[D:%.+]] = stablehlo.subtract [[X]], [[M]] : tensor<4xf32>
// CHECK: [[R:%.+]] = stablehlo.reduce_precision [[D]], format = e8m7 : tensor<4xf32>
// CHECK: [[E:%.+]] = stablehlo.exponential [[R]] : tensor<4xf32>
// CHECK: stablehlo.reduce_precision [[E]], format = e8m7 : tensor<4xf32>
// CHECK: return [[D]], {{%.+}} : tensor<4xf32>, tensor<4xbf16>
func.func @main(%x: tensor<4xbf16>, %m: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xbf16>) {
  %0 = stablehlo.subtract %x, %m : tensor<4xbf16>
  %1 = stablehlo.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
  %2 = stablehlo.exponential %0 : tensor<4xbf16>
  return %1, %2 : tensor<4xf32>, tensor<4xbf16>
}
