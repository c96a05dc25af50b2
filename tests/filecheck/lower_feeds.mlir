// RUN: hloforge opt %s --pass=lower-feeds | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T0:%.+]] = stablehlo.after_all
// CHECK: [[X:%.+]]:2 = stablehlo.custom_call @hloforge.infeed([[T0]]) {{.*}}has_side_effect = true
// CHECK: [[T2:%.+]] = stablehlo.custom_call @hloforge.send([[X]]#0, [[X]]#1) {{.*}}channel = 7{{.*}}has_side_effect = true
// CHECK: return [[T2]]
func.func @main() -> !stablehlo.token {
  %t0 = stablehlo.after_all : !stablehlo.token
  %x:2 = "stablehlo.infeed"(%t0) {infeed_config = ""} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  %t2 = "stablehlo.send"(%x#0, %x#1) {channel_handle = #stablehlo.channel_handle<handle = 7, type = 2>,
    is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %t2 : !stablehlo.token
}
