// RUN: hloforge opt %s --pass=decompose-rng | filecheck %s --implicit-check-not=stablehlo.rng

// Ten rounds of Philox for the bits, ten for the two blocks of the eight numbers; 3528531795 is one of its factors.
// CHECK: "util.global"() {initial_value = dense<0> : tensor<i64>, is_mutable, sym_name = "hloforge.rng_blocks", sym_visibility = "private"
// CHECK: "util.func"() ({
// CHECK-NEXT: ^bb0([[COUNT:%.+]]: tensor<i64>):
// CHECK-NEXT: [[OLD:%.+]] = "util.global.load"() {global = @hloforge.rng_blocks}
// CHECK-NEXT: [[NEW:%.+]] = stablehlo.add [[OLD]], [[COUNT]]
// CHECK-NEXT: "util.global.store"([[NEW]]) {global = @hloforge.rng_blocks}
// CHECK-NEXT: "util.return"([[OLD]])
// CHECK: sym_name = "hloforge.rng_blocks.take"
// CHECK: func.func @main
// CHECK-COUNT-10: stablehlo.constant dense<3528531795>
// CHECK-NOT: stablehlo.constant dense<3528531795>
// CHECK: [[TWO:%.+]] = stablehlo.constant dense<2> : tensor<i64>
// CHECK: [[N:%.+]] = "util.call"([[TWO]]) {callee = @hloforge.rng_blocks.take}
// CHECK-COUNT-10: stablehlo.constant dense<3528531795>
// CHECK-NOT: stablehlo.constant dense<3528531795>
// CHECK: [[RANGE:%.+]] = stablehlo.subtract {{%.+}}, [[A:%.+]] : tensor<8xf32>
// CHECK: [[P:%.+]] = stablehlo.multiply {{%.+}}, [[RANGE]]
// CHECK: stablehlo.add [[A]], [[P]]
// CHECK: return
func.func @main(%key: tensor<2xui64>, %a: tensor<f32>, %b: tensor<f32>)
    -> (tensor<2xui64>, tensor<4xui32>, tensor<8xf32>) {
  %sizes = stablehlo.constant dense<8> : tensor<1xi64>
  %state, %bits = stablehlo.rng_bit_generator %key, algorithm = PHILOX
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %x = stablehlo.rng %a, %b, %sizes, distribution = UNIFORM
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  return %state, %bits, %x : tensor<2xui64>, tensor<4xui32>, tensor<8xf32>
}
