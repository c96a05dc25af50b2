// RUN: hloforge opt %s --pass=legalize-quantized-moves | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[T:%.+]] = stablehlo.transpose %{{.+}}, dims = [1, 0] : (tensor<5x8xui8>) -> tensor<8x5xui8>
// CHECK: [[C:%.+]] = stablehlo.constant dense<128> : tensor<8x5xui8>
// CHECK: [[M:%.+]] = stablehlo.maximum [[T]], [[C]] : tensor<8x5xui8>
// CHECK: return [[M]] : tensor<8x5xui8>
func.func @main(%q: tensor<5x8xui8>) -> tensor<8x5xui8> {
  %wide = stablehlo.convert %q : (tensor<5x8xui8>) -> tensor<5x8xi32>
  %z = stablehlo.constant dense<128> : tensor<5x8xi32>
  %c = stablehlo.subtract %wide, %z : tensor<5x8xi32>
  %f = stablehlo.convert %c : (tensor<5x8xi32>) -> tensor<5x8xf32>
  %s = stablehlo.constant dense<0.05> : tensor<5x8xf32>
  %x = stablehlo.multiply %f, %s : tensor<5x8xf32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<8x5xf32>
  %m = stablehlo.maximum %t, %zero : tensor<8x5xf32>
  %scale = stablehlo.constant dense<0.05> : tensor<8x5xf32>
  %d = stablehlo.divide %m, %scale : tensor<8x5xf32>
  %r = stablehlo.round_nearest_even %d : tensor<8x5xf32>
  %point = stablehlo.constant dense<128.0> : tensor<8x5xf32>
  %a = stablehlo.add %r, %point : tensor<8x5xf32>
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<255.0> : tensor<f32>
  %b = stablehlo.clamp %low, %a, %high : (tensor<f32>, tensor<8x5xf32>, tensor<f32>) -> tensor<8x5xf32>
  %i = stablehlo.convert %b : (tensor<8x5xf32>) -> tensor<8x5xi32>
  %u = stablehlo.convert %i : (tensor<8x5xi32>) -> tensor<8x5xui8>
  return %u : tensor<8x5xui8>
}

// Another scale.
// CHECK-LABEL: func.func @other
// CHECK: [[I:%.+]] = stablehlo.convert %{{.+}} : (tensor<5xf32>) -> tensor<5xui8>
// CHECK: return [[I]] : tensor<5xui8>
func.func @other(%q: tensor<5xui8>) -> tensor<5xui8> {
  %f = stablehlo.convert %q : (tensor<5xui8>) -> tensor<5xf32>
  %s = stablehlo.constant dense<0.05> : tensor<5xf32>
  %x = stablehlo.multiply %f, %s : tensor<5xf32>
  %scale = stablehlo.constant dense<0.06> : tensor<5xf32>
  %d = stablehlo.divide %x, %scale : tensor<5xf32>
  %r = stablehlo.round_nearest_even %d : tensor<5xf32>
  %low = stablehlo.constant dense<0.0> : tensor<5xf32>
  %high = stablehlo.constant dense<255.0> : tensor<5xf32>
  %b = stablehlo.clamp %low, %r, %high : tensor<5xf32>
  %u = stablehlo.convert %b : (tensor<5xf32>) -> tensor<5xui8>
  return %u : tensor<5xui8>
}
