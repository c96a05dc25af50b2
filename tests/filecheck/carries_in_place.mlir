// RUN: hloforge opt %s --pass=carries-in-place | filecheck %s

// CHECK: module attributes {{.*}}stream.topology = #hal.device.topology<links = [(@__device_0 -> @__device_0 = {unified_memory = true})]>
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_update_slice
func.func @main(%first: tensor<1024x4096xf32>, %row: tensor<1x4096xf32>, %n: tensor<i32>) -> tensor<1024x4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last:2 = stablehlo.while(%i = %zero, %rows = %first) : tensor<i32>, tensor<1024x4096xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %u = stablehlo.dynamic_update_slice %rows, %row, %i, %zero
      : (tensor<1024x4096xf32>, tensor<1x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x4096xf32>
    stablehlo.return %next, %u : tensor<i32>, tensor<1024x4096xf32>
  }
  return %last#1 : tensor<1024x4096xf32>
}
