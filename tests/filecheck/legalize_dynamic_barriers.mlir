// RUN: hloforge opt %s --pass=legalize-dynamic-barriers | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[B:%.+]] = "util.optimization_barrier"(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK: [[N:%.+]] = tensor.dim %arg0, {{%.+}}
// CHECK: [[R:%.+]] = "flow.tensor.tie_shape"([[B]], [[N]])
// CHECK: return [[R]]
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %r = stablehlo.optimization_barrier %x : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
