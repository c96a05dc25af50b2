// RUN: hloforge opt %s --keep-marks --pass=dispatch-factorizations | filecheck %s --implicit-check-not=stablehlo.custom_call

// CHECK-LABEL: func.func @main
// CHECK: [[COUNT:%.+]] = arith.constant 1 : index
// CHECK: [[L:%.+]]:3 = "flow.dispatch.workgroups"([[COUNT]], %arg0)
// CHECK: scf.for
// CHECK: vector.transfer_read
// CHECK: math.sqrt
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9]}}
// CHECK: return [[L]]#0, [[L]]#1
func.func @main(%a: tensor<1x112x112xf32>) -> (tensor<1x112x112xf32>, tensor<1x1xi32>) {
  %l:2 = stablehlo.custom_call @hloforge.strips.cholesky(%a) {api_version = 4 : i32, backend_config = {lower = true}}
    : (tensor<1x112x112xf32>) -> (tensor<1x112x112xf32>, tensor<1x1xi32>)
  return %l#0, %l#1 : tensor<1x112x112xf32>, tensor<1x1xi32>
}
