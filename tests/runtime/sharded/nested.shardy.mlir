module @jit_nested attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["rows"=2, "columns"=2]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {"columns"}]>}) -> (tensor<8x4xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"rows", ?}, {?}]>] out_shardings=[<@mesh, [{"rows", ?}, {?}]>] manual_axes={"rows"} (%arg1: tensor<4x8xf32>) {
      %1 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{?}, {"columns", ?}]>] out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"columns"} (%arg2: tensor<4x4xf32>) {
        %11 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
          %12 = stablehlo.add %arg3, %arg4 : tensor<f32>
          stablehlo.return %12 : tensor<f32>
        }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
        sdy.return %11 : tensor<4x4xf32>
      } : (tensor<4x8xf32>) -> tensor<4x4xf32>
      %2 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={"columns"} () {
        %c_0 = stablehlo.constant dense<2> : tensor<ui32>
        %c_1 = stablehlo.constant dense<2> : tensor<ui32>
        %11 = stablehlo.partition_id : tensor<ui32>
        %12 = stablehlo.divide %11, %c_0 : tensor<ui32>
        %13 = stablehlo.remainder %12, %c_1 : tensor<ui32>
        %14 = stablehlo.convert %13 : (tensor<ui32>) -> tensor<i32>
        sdy.return %14 : tensor<i32>
      } : () -> tensor<i32>
      %c = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %c, %2 : tensor<i32>
      %4 = sdy.sharding_constraint %3 <@mesh, []> : tensor<i32>
      %5 = stablehlo.convert %4 : (tensor<i32>) -> tensor<f32>
      %6 = sdy.sharding_constraint %5 <@mesh, []> : tensor<f32>
      %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
      %8 = sdy.sharding_constraint %7 <@mesh, [{?}, {?}]> : tensor<4x4xf32>
      %9 = stablehlo.multiply %1, %8 : tensor<4x4xf32>
      %10 = sdy.sharding_constraint %9 <@mesh, [{?}, {?}]> : tensor<4x4xf32>
      sdy.return %10 : tensor<4x4xf32>
    } : (tensor<8x8xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
