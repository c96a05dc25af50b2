// RUN: hloforge opt %s --pass=unwrap-async | filecheck %s --implicit-check-not=mhlo.async

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = call @comp(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: return [[R]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = "mhlo.async_start"(%x) <{called_computation = @comp, execution_thread = "main"}>
    : (tensor<4xf32>) -> !mhlo.async_bundle<tensor<4xf32>, tensor<4xf32>>
  %r = "mhlo.async_done"(%s) : (!mhlo.async_bundle<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @comp(%x: tensor<4xf32>) -> tensor<4xf32> attributes {execution_thread = "main"} {
  %r = stablehlo.negate %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
