// Two sums of windows of equal form do not compile for CUDA.
// cause: The zeros that both sums begin with are one linalg.generic, after equal ones were merged. With fuse-multi-use-producers,
// cause: FormDispatchRegions puts it into the first sum's dispatch, which returns both it and what the sum writes into it. One
// cause: of the two needs an allocation (bufferization.alloc_tensor), and the pipeline for CUDA has none. A linalg.fill is
// cause: repeated in each dispatch instead. Without --iree-dispatch-creation-fuse-multi-use, or with a barrier before one of the
// cause: zeros, it compiles.
// target: cuda
// flags: --iree-opt-level=O1
// fault: compile-error "failed to bufferize op"
func.func @main(%a: tensor<3x130xi32>, %b: tensor<3x130xi32>) -> (tensor<3x129xi32>, tensor<3x129xi32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
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
  return %p, %q : tensor<3x129xi32>, tensor<3x129xi32>
}
