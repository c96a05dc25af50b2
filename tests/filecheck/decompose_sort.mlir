// RUN: hloforge opt %s --pass=decompose-sort | filecheck %s --implicit-check-not=stablehlo.sort

// Nine elements are padded to 16, and their positions, which a stable order needs, are carried with them.
// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0 : (tensor<9xf32>) -> tensor<1x9xf32>
// CHECK: [[V:%.+]] = stablehlo.reshape %arg1 : (tensor<9xi32>) -> tensor<1x9xi32>
// CHECK: [[KEYS:%.+]] = stablehlo.pad [[X]], {{.*}} -> tensor<1x16xf32>
// CHECK: [[VALUES:%.+]] = stablehlo.pad [[V]], {{.*}} -> tensor<1x16xi32>
// CHECK: [[PLACES:%.+]] = stablehlo.iota dim = 1 : tensor<1x16xi32>
// CHECK: [[LOOP:%.+]]:5 = stablehlo.while({{.*}} = [[KEYS]], {{.*}} = [[VALUES]], {{.*}} = [[PLACES]])
// CHECK: stablehlo.xor
// CHECK: "stablehlo.gather"
// CHECK: stablehlo.compare LT, {{.*}} : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xi1>
// CHECK: stablehlo.select {{.*}} : tensor<1x16xi1>, tensor<1x16xf32>
// CHECK: stablehlo.slice [[LOOP]]#2 [0:1, 0:9]
// CHECK: stablehlo.slice [[LOOP]]#3 [0:1, 0:9]
func.func @main(%keys: tensor<9xf32>, %values: tensor<9xi32>) -> (tensor<9xf32>, tensor<9xi32>) {
  %0:2 = "stablehlo.sort"(%keys, %values) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %f = stablehlo.negate %a : tensor<f32>
    %g = stablehlo.negate %b : tensor<f32>
    %p = stablehlo.compare LT, %f, %g : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<9xf32>, tensor<9xi32>) -> (tensor<9xf32>, tensor<9xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xi32>
}
