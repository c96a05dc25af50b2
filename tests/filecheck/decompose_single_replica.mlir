// RUN: hloforge opt %s --pass=decompose-single-replica | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.replica_id
// CHECK: stablehlo.constant dense<0> : tensor<ui32>
func.func @main() -> tensor<ui32> {
  %0 = stablehlo.replica_id : tensor<ui32>
  return %0 : tensor<ui32>
}
