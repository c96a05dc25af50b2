// RUN: hloforge opt %s --pass=check-equal-sizes | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[M:%.+]] = tensor.dim %arg0, {{%.+}} : tensor<?xf32>
// CHECK-DAG: [[N:%.+]] = tensor.dim %arg1, {{%.+}} : tensor<?xf32>
// CHECK: [[SAME:%.+]] = arith.cmpi eq, [[M]], [[N]]
// CHECK: cf.assert [[SAME]], "shape assertion: dimension 0 of x and dimension 0 of y differ"
// CHECK: stablehlo.add %arg0, %arg1
module attributes {hloforge.parameter_names = ["x", "y"], hloforge.parameter_shapes = ["f32[?]", "f32[?]"],
    hloforge.result_shape = "f32[?]", hloforge.input_output_alias = []} {
  func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
    %r = stablehlo.add %x, %y : tensor<?xf32>
    return %r : tensor<?xf32>
  }
}
