// RUN: hloforge opt %s --pass=interchange-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = "flow.dispatch.workgroups"
// CHECK: scf.for
// CHECK: [[V:%.+]] = vector.transfer_read
// CHECK: scf.while
// CHECK: arith.cmpi slt
// CHECK: arith.divf
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: vector.transfer_write
func.func @main(%x: tensor<512x512xf32>, %a: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<50> : tensor<i32>
  %half = stablehlo.constant dense<0.5> : tensor<512x512xf32>
  %y:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<512x512xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %q = stablehlo.divide %a, %v : tensor<512x512xf32>
    %s = stablehlo.add %v, %q : tensor<512x512xf32>
    %m = stablehlo.multiply %s, %half : tensor<512x512xf32>
    stablehlo.return %next, %m : tensor<i32>, tensor<512x512xf32>
  }
  return %y#1 : tensor<512x512xf32>
}
