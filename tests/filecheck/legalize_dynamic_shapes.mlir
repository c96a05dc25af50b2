// RUN: hloforge opt %s --pass=legalize-dynamic-shapes | filecheck %s --implicit-check-not=stablehlo.dynamic_gather

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = "linalg.generic"
// CHECK: [[I:%.+]] = tensor.extract %arg1
// CHECK: [[J:%.+]] = arith.index_cast [[I]]
// CHECK: [[K:%.+]] = arith.minsi [[J]]
// CHECK: [[L:%.+]] = arith.maxsi {{%.+}}, [[K]]
// CHECK: [[X:%.+]] = tensor.extract %arg0{{\[}}[[L]],
// CHECK: "linalg.yield"([[X]])
// CHECK: return [[R]]
func.func @main(%x: tensor<?x4xf32>, %i: tensor<?x1xi32>) -> tensor<?x4xf32> {
  %sizes = stablehlo.constant dense<[1, 4]> : tensor<2xi32>
  %r = "stablehlo.dynamic_gather"(%x, %i, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
    : (tensor<?x4xf32>, tensor<?x1xi32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
