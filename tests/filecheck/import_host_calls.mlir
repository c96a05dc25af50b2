// RUN: hloforge opt %s --keep-marks --pass=import-host-calls | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = call @host.call_0(%arg0) : (tensor<4xf32>) -> tensor<3xi8>
// CHECK: return [[Y]]
// CHECK: func.func private @host.call_0(tensor<4xf32>) -> tensor<3xi8> attributes {hloforge.host_call = "RECORD"}
func.func @main(%x: tensor<4xf32>) -> tensor<3xi8> {
  %y = stablehlo.custom_call @hloforge.host_call(%x) {hloforge.host_call = "RECORD"} : (tensor<4xf32>) -> tensor<3xi8>
  return %y : tensor<3xi8>
}
