// RUN: hloforge opt %s --pass=legalize-slice-starts | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[J:%.+]] = stablehlo.convert %arg1 : (tensor<i8>) -> tensor<i32>
// CHECK-NEXT: [[R:%.+]] = stablehlo.dynamic_slice %arg0, [[J]], sizes = [3] : (tensor<10xf32>, tensor<i32>) -> tensor<3xf32>
// CHECK-NEXT: return [[R]]
func.func @main(%x: tensor<10xf32>, %i: tensor<i8>) -> tensor<3xf32> {
  %r = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<10xf32>, tensor<i8>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
