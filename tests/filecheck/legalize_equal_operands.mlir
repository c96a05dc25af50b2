// RUN: hloforge opt %s --pass=legalize-equal-operands | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[R:%.+]] = stablehlo.xor %arg0, %arg0 : tensor<?xi32>
// CHECK-NEXT: return [[R]]
func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
  %r = stablehlo.subtract %x, %x : tensor<?xi32>
  return %r : tensor<?xi32>
}
