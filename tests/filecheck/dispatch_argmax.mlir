// RUN: hloforge opt %s --pass=dispatch-argmax | filecheck %s --implicit-check-not=stablehlo.reduce

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.reshape %arg0
// CHECK: [[AT:%.+]]:2 = "flow.dispatch.workgroups"({{%.+}}, [[X]]) ({
// CHECK: scf.for
// CHECK: scf.for
// CHECK: [[GREATER:%.+]] = arith.cmpf ogt
// CHECK: arith.select [[GREATER]]
// CHECK: [[MOST:%.+]] = vector.reduction <maximumf>
// CHECK: [[WIDE:%.+]] = vector.broadcast [[MOST]]
// CHECK: scf.for
// CHECK: [[IS:%.+]] = arith.cmpf oeq, {{.*}}[[WIDE]]
// CHECK: arith.select [[IS]]
// CHECK: vector.reduction <minsi>
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9]}}
// CHECK: return [[AT]]#1
func.func @main(%x: tensor<64x1000xf32>) -> tensor<64xi32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %iota = stablehlo.iota dim = 1 : tensor<64x1000xi32>
  %r:2 = stablehlo.reduce(%x init: %low), (%iota init: %zero) across dimensions = [1]
    : (tensor<64x1000xf32>, tensor<64x1000xi32>, tensor<f32>, tensor<i32>) -> (tensor<64xf32>, tensor<64xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %greater = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %equal = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %first = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %q = stablehlo.or %greater, %nan : tensor<i1>
      %tie = stablehlo.and %equal, %first : tensor<i1>
      %p = stablehlo.or %q, %tie : tensor<i1>
      %m = stablehlo.select %q, %a, %b : tensor<i1>, tensor<f32>
      %k = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %m, %k : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<64xi32>
}
