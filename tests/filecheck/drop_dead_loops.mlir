// RUN: hloforge opt %s --pass=drop-dead-loops | filecheck %s

// What is read of the loops is what they pass on: it is known before them.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.while
// CHECK: stablehlo.negate %arg1
func.func @main(%p: tensor<i1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %r:3 = stablehlo.while(%q = %p, %a = %x, %b = %x) : tensor<i1>, tensor<3xf32>, tensor<3xf32> cond {
    stablehlo.return %q : tensor<i1> } do {
    %s:2 = stablehlo.while(%c = %q, %d = %b) : tensor<i1>, tensor<3xf32> cond {
      stablehlo.return %c : tensor<i1> } do {
      stablehlo.return %c, %d : tensor<i1>, tensor<3xf32> }
    %t = stablehlo.sine %a : tensor<3xf32>
    stablehlo.return %q, %t, %s#1 : tensor<i1>, tensor<3xf32>, tensor<3xf32> }
  %n = stablehlo.negate %r#2 : tensor<3xf32>
  return %n : tensor<3xf32>
}
