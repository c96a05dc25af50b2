// RUN: hloforge opt %s --pass=lower-sdy | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[S0:%.+]] = stablehlo.slice %arg0 [0:4]
// CHECK: [[S1:%.+]] = stablehlo.slice %arg0 [4:8]
// CHECK: [[S:%.+]] = "stablehlo.map"([[S0]], [[S1]])
// CHECK: stablehlo.add
// CHECK: return [[S]]
module {
  sdy.mesh @mesh = <["d"=2]>
  func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {
    %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"d"}
        (%a: tensor<4xf32>) {
      %s = "stablehlo.all_reduce"(%a) ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %t = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %s : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
