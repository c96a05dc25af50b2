// RUN: hloforge opt %s --pass=legalize-subnormal-rounding | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[N:%.+]] = stablehlo.select {{%.+}}, [[ONE:%.+]], %arg0 : tensor<4xi1>, tensor<4xf32>
// CHECK: [[R:%.+]] = stablehlo.floor [[N]] {hloforge.normal} : tensor<4xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.floor %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
