// RUN: hloforge opt %s --pass=legalize-equal-results | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = stablehlo.select %arg0, %arg1, {{%.+}} : tensor<5xi1>, tensor<5xf32>
// CHECK: [[E:%.+]] = stablehlo.exponential [[Y]]
// CHECK: return [[E]], [[Y]]
func.func @main(%m: tensor<5xi1>, %x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<5xf32>
  %y = stablehlo.select %m, %x, %zero : tensor<5xi1>, tensor<5xf32>
  %e = stablehlo.exponential %y : tensor<5xf32>
  %s = stablehlo.select %m, %y, %zero : tensor<5xi1>, tensor<5xf32>
  return %e, %s : tensor<5xf32>, tensor<5xf32>
}
