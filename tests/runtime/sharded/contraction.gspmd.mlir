module @jit_contraction attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}, %arg1: tensor<16x12xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> (tensor<8x12xf32> {jax.result_info = "result", mhlo.sharding = "{replicated}"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x12xf32>) -> tensor<8x12xf32>
    return %0 : tensor<8x12xf32>
  }
}
