// RUN: hloforge opt %s --pass=dispatch-softmax | filecheck %s

// What the dispatch replaces is left without a reader; canonicalization takes it away.
// CHECK-LABEL: func.func @main
// CHECK: [[Y:%.+]] = "flow.dispatch.workgroups"({{%.+}}, %arg0) ({
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.maximumf
// CHECK: [[M:%.+]] = vector.reduction <maximumf>
// CHECK: scf.for
// CHECK: arith.subf
// CHECK: [[E:%.+]] = math.exp
// CHECK: vector.transfer_write [[E]]
// CHECK: [[S:%.+]] = vector.reduction <add>
// CHECK: scf.for
// CHECK: [[Q:%.+]] = arith.divf
// CHECK: vector.transfer_write [[Q]]
// CHECK: "flow.return"
// CHECK: hloforge.work = {{[1-9]}}
// CHECK: return [[Y]]
func.func @main(%x: tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>
  %mm = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x1000xf32>
  %d = stablehlo.subtract %x, %mm : tensor<64x1000xf32>
  %e = stablehlo.exponential %d : tensor<64x1000xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>
  %ss = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<64xf32>) -> tensor<64x1000xf32>
  %y = stablehlo.divide %e, %ss : tensor<64x1000xf32>
  return %y : tensor<64x1000xf32>
}
