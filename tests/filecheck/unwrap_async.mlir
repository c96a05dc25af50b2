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

// CHECK-LABEL: func.func @in_order
// CHECK-NOT: async
// CHECK-NOT: control_dep
// CHECK: [[N:%.+]] = stablehlo.slice %arg0
// CHECK: return [[N]]
func.func @in_order(%x: tensor<4xf32>) -> tensor<2xf32> {
  %y = stablehlo.abs %x : tensor<4xf32>
  %s = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %n = stablehlo.slice %a [1:3] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %n : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
  stablehlo.custom_call @control_dep(%s, %y) {has_side_effect = true} : (!stablehlo.future<tensor<2xf32>>, tensor<4xf32>) -> ()
  %d = stablehlo.custom_call @control_dep(%s, %y) : (!stablehlo.future<tensor<2xf32>>, tensor<4xf32>) -> tuple<>
  %r = "stablehlo.async_done"(%s) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
