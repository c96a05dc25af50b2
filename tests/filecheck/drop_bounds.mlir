// RUN: hloforge opt %s --pass=drop-bounds | filecheck %s --implicit-check-not=stablehlo.bounds

// CHECK: func.func @main(%arg0: tensor<?x3xf32>) -> tensor<?x3xf32> {
// CHECK: return %arg0 : tensor<?x3xf32>
func.func @main(%x: tensor<?x3xf32, #stablehlo.bounds<5, ?>>) -> tensor<?x3xf32, #stablehlo.bounds<5, ?>> {
  return %x : tensor<?x3xf32, #stablehlo.bounds<5, ?>>
}
