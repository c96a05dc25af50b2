// RUN: hloforge opt %s --pass=legalize-dynamic-contractions | filecheck %s --implicit-check-not=stablehlo.convolution

// CHECK: [[IN:#.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
// CHECK: [[WINDOW:#.+]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = "linalg.generic"(%arg0, %arg1, {{%.+}})
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: indexing_maps = {{\[}}[[IN]], [[WINDOW]],
// CHECK: return [[R]]
func.func @main(%x: tensor<?x?x?x3xf32>, %k: tensor<3x3x3x5xf32>) -> tensor<?x?x?x5xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x?x?x3xf32>, tensor<3x3x3x5xf32>) -> tensor<?x?x?x5xf32>
  return %r : tensor<?x?x?x5xf32>
}
