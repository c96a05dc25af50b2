// RUN: hloforge opt %s --pass=legalize-sliced-operands | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[S:%.+]] = stablehlo.slice %arg0 [0:5:2] : (tensor<5xf32>) -> tensor<3xf32>
// CHECK-NEXT: [[B:%.+]] = stablehlo.optimization_barrier [[S]] : tensor<3xf32>
// CHECK-NEXT: [[R:%.+]] = stablehlo.reverse [[B]], dims = [0] : tensor<3xf32>
// CHECK-NEXT: return [[R]]
func.func @main(%x: tensor<5xf32>) -> tensor<3xf32> {
  %s = stablehlo.slice %x [0:5:2] : (tensor<5xf32>) -> tensor<3xf32>
  %r = stablehlo.reverse %s, dims = [0] : tensor<3xf32>
  return %r : tensor<3xf32>
}
