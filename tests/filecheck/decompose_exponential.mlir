// RUN: hloforge opt %s --pass=decompose-exponential | filecheck %s --implicit-check-not=stablehlo.exponential

// 0x4338000000000000 is 1.5 * 2^52: adding it rounds to the next integer, whose bits are the lowest of the sum.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<1.4426950408889634>
// CHECK: stablehlo.constant dense<0x4338000000000000>
// CHECK: [[K:%.+]] = stablehlo.add
// CHECK: stablehlo.constant dense<0.69314718
// CHECK: [[R:%.+]] = stablehlo.subtract %arg0
// CHECK: [[BITS:%.+]] = stablehlo.bitcast_convert [[K]] : (tensor<4xf64>) -> tensor<4xui64>
// CHECK: stablehlo.constant dense<52>
// CHECK: [[SHIFTED:%.+]] = stablehlo.shift_left [[BITS]]
// CHECK: stablehlo.add {{.*}}[[SHIFTED]]{{.*}} : tensor<4xui64>
// CHECK: return {{%.+}} : tensor<4xf64>
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %e = stablehlo.exponential %x : tensor<4xf64>
  return %e : tensor<4xf64>
}
