// RUN: hloforge opt %s --pass=legalize-initial-values | filecheck %s

// Signs do not matter, nor does the shape: the third begins behind three barriers.
// CHECK-LABEL: func.func @main
// CHECK: [[G:%.+]] = stablehlo.optimization_barrier %{{.+}} : tensor<i32>
// CHECK: "stablehlo.reduce_window"(%arg0, [[G]])
// CHECK: [[H:%.+]] = stablehlo.optimization_barrier [[G]]
// CHECK: "stablehlo.reduce_window"(%arg1, [[H]])
// CHECK: [[I:%.+]] = stablehlo.optimization_barrier %{{.+}} : tensor<ui32>
// CHECK: [[J:%.+]] = stablehlo.optimization_barrier [[I]]
// CHECK: [[K:%.+]] = stablehlo.optimization_barrier [[J]]
// CHECK: "stablehlo.reduce_window"(%arg2, [[K]])
func.func @main(%a: tensor<3x130xi32>, %b: tensor<3x130xi32>, %u: tensor<130x3xui32>) -> (tensor<3x129xi32>, tensor<3x129xi32>, tensor<129x3xui32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %d = stablehlo.constant dense<0> : tensor<ui32>
  %p = "stablehlo.reduce_window"(%a, %c) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %s = stablehlo.add %x, %y : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<3x130xi32>, tensor<i32>) -> tensor<3x129xi32>
  %q = "stablehlo.reduce_window"(%b, %c) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %s = stablehlo.add %x, %y : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<3x130xi32>, tensor<i32>) -> tensor<3x129xi32>
  %r = "stablehlo.reduce_window"(%u, %d) <{window_dimensions = array<i64: 2, 1>}> ({
  ^bb0(%x: tensor<ui32>, %y: tensor<ui32>):
    %s = stablehlo.add %x, %y : tensor<ui32>
    stablehlo.return %s : tensor<ui32>
  }) : (tensor<130x3xui32>, tensor<ui32>) -> tensor<129x3xui32>
  return %p, %q, %r : tensor<3x129xi32>, tensor<3x129xi32>, tensor<129x3xui32>
}
