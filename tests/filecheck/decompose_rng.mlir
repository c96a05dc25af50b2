// RUN: hloforge opt %s --pass=decompose-rng | filecheck %s --implicit-check-not=stablehlo.rng

// CHECK: "util.global"() {{.*}}hloforge.rng_blocks
// CHECK: "util.func"()
// CHECK: hloforge.rng_blocks.take
// CHECK: func.func @main
// CHECK: [[N:%.+]] = "util.call"({{%.+}}) {{.*}}@hloforge.rng_blocks.take
// CHECK: [[D:%.+]] = stablehlo.subtract {{%.+}} : tensor<{{.*}}f32>
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
