// RUN: hloforge opt %s --pass=legalize-transposed-reductions | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]]:2 = stablehlo.reduce(%arg0
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[R]]#1 : tensor<2x3xi32>
// CHECK: [[T:%.+]] = stablehlo.transpose [[B]], dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
// CHECK: return [[T]]
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<3x2xi32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %iota = stablehlo.iota dim = 2 : tensor<2x3x4xi32>
  %r:2 = stablehlo.reduce(%x init: %low), (%iota init: %zero) across dimensions = [2]
    : (tensor<2x3x4xf32>, tensor<2x3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %m = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
      %k = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %m, %k : tensor<f32>, tensor<i32>
    }
  %t = stablehlo.transpose %r#1, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return %t : tensor<3x2xi32>
}
