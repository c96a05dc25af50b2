// RUN: hloforge opt %s --pass=legalize-byte-tables | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[Q:.+]]: tensor<1x16x16x32xui8>)
// CHECK: %[[B:.+]] = stablehlo.constant dense<"0x000102{{.+}}FEFF"> : tensor<256xui8>
// CHECK: stablehlo.convert %[[B]]
// CHECK: stablehlo.logistic %{{.+}} : tensor<256xf32>
// CHECK: %[[T:.+]] = stablehlo.convert %{{.+}} : (tensor<256xf32>) -> tensor<256xui8>
// CHECK: %[[R:.+]] = "stablehlo.gather"(%[[T]], %[[Q]]){{.+}}{hloforge.byte_table}
// CHECK: return %[[R]]
func.func @main(%q: tensor<1x16x16x32xui8>) -> tensor<1x16x16x32xui8> {
  %scale = stablehlo.constant dense<0.05> : tensor<f32>
  %scales = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<1x16x16x32xf32>
  %other = stablehlo.constant dense<0.004> : tensor<f32>
  %others = stablehlo.broadcast_in_dim %other, dims = [] : (tensor<f32>) -> tensor<1x16x16x32xf32>
  %f = stablehlo.convert %q : (tensor<1x16x16x32xui8>) -> tensor<1x16x16x32xf32>
  %x = stablehlo.multiply %f, %scales : tensor<1x16x16x32xf32>
  %l = stablehlo.logistic %x : tensor<1x16x16x32xf32>
  %d = stablehlo.divide %l, %others : tensor<1x16x16x32xf32>
  %n = stablehlo.round_nearest_even %d : tensor<1x16x16x32xf32>
  %r = stablehlo.convert %n : (tensor<1x16x16x32xf32>) -> tensor<1x16x16x32xui8>
  return %r : tensor<1x16x16x32xui8>
}

// Fewer numbers than a table is worth.
// CHECK-LABEL: func.func private @small
// CHECK-NOT: stablehlo.gather
func.func private @small(%q: tensor<16xui8>) -> tensor<16xui8> {
  %f = stablehlo.convert %q : (tensor<16xui8>) -> tensor<16xf32>
  %l = stablehlo.logistic %f : tensor<16xf32>
  %r = stablehlo.convert %l : (tensor<16xf32>) -> tensor<16xui8>
  return %r : tensor<16xui8>
}
