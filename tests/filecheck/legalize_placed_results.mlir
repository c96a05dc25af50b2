// RUN: hloforge opt %s --pass=legalize-placed-results | filecheck %s

// Seven numbers of 4 bytes are no multiple of 16 bytes, eight are.
// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = stablehlo.add %arg1, %arg1
// CHECK: [[B:%.+]] = stablehlo.optimization_barrier [[Y]] : tensor<1024xi32>
// CHECK: [[R:%.+]] = stablehlo.dynamic_update_slice %arg0, [[B]]
// CHECK: [[P:%.+]] = stablehlo.pad [[Y]]
// CHECK: return [[R]], [[P]]
func.func @main(%a: tensor<2000xi32>, %x: tensor<1024xi32>) -> (tensor<2000xi32>, tensor<1032xi32>) {
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %y = stablehlo.add %x, %x : tensor<1024xi32>
  %r = stablehlo.dynamic_update_slice %a, %y, %seven : (tensor<2000xi32>, tensor<1024xi32>, tensor<i32>) -> tensor<2000xi32>
  %p = stablehlo.pad %y, %seven, low = [8], high = [0], interior = [0] : (tensor<1024xi32>, tensor<i32>) -> tensor<1032xi32>
  return %r, %p : tensor<2000xi32>, tensor<1032xi32>
}
