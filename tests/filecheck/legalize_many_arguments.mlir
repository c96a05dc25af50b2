// RUN: hloforge opt %s --pass='legalize-many-arguments{most=3}' | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[B:%.+]] = stablehlo.add {{%.+}}, %arg2
// CHECK: [[H:%.+]] = stablehlo.optimization_barrier [[B]]
// CHECK: [[C:%.+]] = stablehlo.add [[H]], %arg3
// CHECK: stablehlo.add [[C]], %arg4
func.func @main(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<4xf32>)
    -> tensor<4xf32> {
  %5 = stablehlo.add %0, %1 : tensor<4xf32>
  %6 = stablehlo.add %5, %2 : tensor<4xf32>
  %7 = stablehlo.add %6, %3 : tensor<4xf32>
  %8 = stablehlo.add %7, %4 : tensor<4xf32>
  return %8 : tensor<4xf32>
}
