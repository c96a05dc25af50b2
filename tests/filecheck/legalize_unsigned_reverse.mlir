// RUN: hloforge opt %s --pass=legalize-unsigned-reverse | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[S:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xui8>) -> tensor<4xi8>
// CHECK-NEXT: [[T:%.+]] = stablehlo.reverse [[S]], dims = [0] : tensor<4xi8>
// CHECK-NEXT: [[R:%.+]] = stablehlo.bitcast_convert [[T]] : (tensor<4xi8>) -> tensor<4xui8>
// CHECK-NEXT: return [[R]]
func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<4xui8>
  return %r : tensor<4xui8>
}
