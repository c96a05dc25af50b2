// RUN: hloforge opt %s --pass=legalize-known-divisors | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.remainder
// CHECK: %[[SIZE:.+]] = stablehlo.abs %{{.+}} : tensor<9xf32>
// CHECK: stablehlo.floor
// CHECK: stablehlo.subtract %[[SIZE]], %{{.+}} : tensor<9xf32>
// CHECK: stablehlo.or %{{.+}}, %{{.+}} : tensor<9xui32>
func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f64>
  %narrow = stablehlo.convert %two : (tensor<f64>) -> tensor<f32>
  %many = stablehlo.broadcast_in_dim %narrow, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %r = stablehlo.remainder %x, %many : tensor<9xf32>
  return %r : tensor<9xf32>
}

// No power of two, a small one, by which a quotient may be infinite, and integers.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: stablehlo.remainder
func.func @others(%x: tensor<9xf32>, %i: tensor<9xi32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xi32>) {
  %three = stablehlo.constant dense<3.0> : tensor<9xf32>
  %half = stablehlo.constant dense<0.5> : tensor<9xf32>
  %two = stablehlo.constant dense<2> : tensor<9xi32>
  %r = stablehlo.remainder %x, %three : tensor<9xf32>
  %s = stablehlo.remainder %x, %half : tensor<9xf32>
  %t = stablehlo.remainder %i, %two : tensor<9xi32>
  return %r, %s, %t : tensor<9xf32>, tensor<9xf32>, tensor<9xi32>
}
