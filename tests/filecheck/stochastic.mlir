// RUN: hloforge opt %s --pass=lower-mhlo | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.abs %arg0
// CHECK: [[BELOW:%.+]] = stablehlo.floor [[X]]
// CHECK: [[REST:%.+]] = stablehlo.subtract [[X]], [[BELOW]]
// CHECK: [[FULL:%.+]] = stablehlo.constant dense<4.2949673E+9> : tensor<4xf32>
// CHECK: [[SCALED:%.+]] = stablehlo.multiply [[REST]], [[FULL]]
// CHECK: [[LIMIT:%.+]] = stablehlo.convert [[SCALED]] : (tensor<4xf32>) -> tensor<4xui32>
// CHECK: [[LOW:%.+]] = stablehlo.convert [[BELOW]] : (tensor<4xf32>) -> tensor<4xi8>
// CHECK: [[UP:%.+]] = stablehlo.compare LT, %arg1, [[LIMIT]]
// CHECK: [[NEXT:%.+]] = stablehlo.add [[LOW]]
// CHECK: [[N:%.+]] = stablehlo.select [[UP]], [[NEXT]], [[LOW]]
// CHECK: [[MINUS:%.+]] = stablehlo.negate [[N]]
// CHECK: stablehlo.select {{%.+}}, [[MINUS]], [[N]]
// CHECK: return {{%.+}} : tensor<4xi8>
func.func @main(%x: tensor<4xf32>, %bits: tensor<4xui32>) -> tensor<4xi8> {
  %r = "mhlo.stochastic_convert"(%x, %bits) : (tensor<4xf32>, tensor<4xui32>) -> tensor<4xi8>
  return %r : tensor<4xi8>
}
