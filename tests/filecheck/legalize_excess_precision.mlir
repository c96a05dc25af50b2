// RUN: hloforge opt %s --pass=legalize-excess-precision | filecheck %s

// Who converts to f32 reads the product as it was.
// CHECK-LABEL: func.func @main
// CHECK: [[W:%.+]] = stablehlo.multiply {{%.+}}, {{%.+}} : tensor<8xf32>
// CHECK-NEXT: [[M:%.+]] = stablehlo.convert [[W]] : (tensor<8xf32>) -> tensor<8xbf16>
// A reduction of so many elements is XLA's library's, which rounds nothing; its operand is neither read elsewhere.
// CHECK: [[P:%.+]] = stablehlo.multiply {{%.+}}, {{%.+}} : tensor<4096xf32>
// CHECK: [[S:%.+]] = stablehlo.add [[P]], {{%.+}} : tensor<4096xf32>
// CHECK: [[R:%.+]] = stablehlo.reduce([[S]] init: {{%.+}}) applies stablehlo.add
// CHECK: return [[M]], [[W]], [[R]]
func.func @main(%x: tensor<8xbf16>, %y: tensor<4096xbf16>) -> (tensor<8xbf16>, tensor<8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.multiply %x, %x : tensor<8xbf16>
  %w = stablehlo.convert %m : (tensor<8xbf16>) -> tensor<8xf32>
  %p = stablehlo.multiply %y, %y : tensor<4096xbf16>
  %q = stablehlo.add %p, %y : tensor<4096xbf16>
  %s = stablehlo.convert %q : (tensor<4096xbf16>) -> tensor<4096xf32>
  %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
  return %m, %w, %r : tensor<8xbf16>, tensor<8xf32>, tensor<f32>
}

// What reads 4,096 sums alone is the library's as well; several readers get what it has not rounded.
// CHECK-LABEL: func.func @after
// CHECK: [[SUM:%.+]] = stablehlo.reduce({{.+}} applies stablehlo.add
// CHECK: stablehlo.multiply [[SUM]], [[SUM]] : tensor<4096xf32>
// CHECK: stablehlo.sine [[SUM]] : tensor<4096xf32>
func.func @after(%x: tensor<4096x8xbf16>) -> (tensor<4096xbf16>, tensor<4096xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = stablehlo.convert %x : (tensor<4096x8xbf16>) -> tensor<4096x8xf32>
  %r = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4096x8xf32>, tensor<f32>) -> tensor<4096xf32>
  %s = stablehlo.convert %r : (tensor<4096xf32>) -> tensor<4096xbf16>
  %m = stablehlo.multiply %s, %s : tensor<4096xbf16>
  %n = stablehlo.sine %s : tensor<4096xbf16>
  return %m, %n : tensor<4096xbf16>, tensor<4096xbf16>
}

// A product that names its algorithm multiplies numbers of bf16, also beside a reduction whose library would not round.
// CHECK-LABEL: func.func @algorithm
// CHECK: [[N:%.+]] = stablehlo.convert {{%.+}} : (tensor<64x64xf32>) -> tensor<64x64xbf16>
// CHECK: stablehlo.dot_general [[N]], {{%.+}}, {{.*}} : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
func.func @algorithm(%x: tensor<64x64xf32>, %y: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %n = stablehlo.convert %x : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %p = stablehlo.dot_general %n, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.divide %p, %b : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
