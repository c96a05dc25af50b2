// RUN: hloforge opt %s --pass=legalize-known-exponents | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.power
// CHECK: %[[SQUARE:.+]] = stablehlo.multiply %arg0, %arg0
// CHECK: stablehlo.multiply %[[SQUARE]], %arg0
func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
  %c = stablehlo.constant dense<3.0> : tensor<f32>
  %e = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %r = stablehlo.power %x, %e : tensor<9xf32>
  return %r : tensor<9xf32>
}

// CHECK-LABEL: func.func @one
// CHECK: %[[ONE:.+]] = stablehlo.constant dense<1.000000e+00> : tensor<9xf64>
// CHECK: return %[[ONE]]
func.func @one(%x: tensor<9xf64>) -> tensor<9xf64> {
  %e = stablehlo.constant dense<0.0> : tensor<9xf64>
  %r = stablehlo.power %x, %e : tensor<9xf64>
  return %r : tensor<9xf64>
}

// Two products round twice, and roots are no products.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: stablehlo.power
func.func @kept(%x: tensor<9xbf16>, %y: tensor<9xf32>) -> (tensor<9xbf16>, tensor<9xf32>) {
  %e = stablehlo.constant dense<3.0> : tensor<9xbf16>
  %r = stablehlo.power %x, %e : tensor<9xbf16>
  %h = stablehlo.constant dense<0.5> : tensor<9xf32>
  %s = stablehlo.power %y, %h : tensor<9xf32>
  return %r, %s : tensor<9xbf16>, tensor<9xf32>
}
