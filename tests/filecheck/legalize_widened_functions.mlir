// RUN: hloforge opt %s --pass=legalize-widened-functions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[W:%.+]] = stablehlo.convert %arg0 : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: [[F:%.+]] = chlo.digamma [[W]] : tensor<4xf32> -> tensor<4xf32>
// CHECK: [[R:%.+]] = stablehlo.convert [[F]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: chlo.tan %{{.+}} : tensor<4xbf16>
// CHECK: chlo.sinh %arg1 : tensor<4xf16>
func.func @main(%a: tensor<4xbf16>, %b: tensor<4xf16>) -> (tensor<4xbf16>, tensor<4xf16>) {
  %f = chlo.digamma %a : tensor<4xbf16> -> tensor<4xbf16>
  %t = chlo.tan %f : tensor<4xbf16> -> tensor<4xbf16>
  %s = chlo.sinh %b : tensor<4xf16> -> tensor<4xf16>
  return %t, %s : tensor<4xbf16>, tensor<4xf16>
}
