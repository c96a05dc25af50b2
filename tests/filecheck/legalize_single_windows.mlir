// RUN: hloforge opt %s --pass=legalize-single-windows | filecheck %s

// A window at a place that the program states is added to where it is.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.scatter
// CHECK: %[[OLD:.+]] = stablehlo.slice %{{.+}} [0:8, 1:9] : (tensor<8x9xf32>) -> tensor<8x8xf32>
// CHECK: %[[NEW:.+]] = stablehlo.add %[[OLD]], %{{.+}} : tensor<8x8xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.+}}, %[[NEW]], %{{.+}}, %{{.+}}
func.func @main(%x: tensor<8x9xf32>, %y: tensor<8x8xf32>) -> tensor<8x9xf32> {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %r = "stablehlo.scatter"(%x, %one, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<8x9xf32>, tensor<1xi32>, tensor<8x8xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// One that reaches outside is left alone: it changes nothing, where an update would be moved.
// CHECK-LABEL: func.func @outside
// CHECK: stablehlo.scatter
func.func @outside(%x: tensor<8x9xf32>, %y: tensor<8x8xf32>) -> tensor<8x9xf32> {
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %r = "stablehlo.scatter"(%x, %two, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) : (tensor<8x9xf32>, tensor<1xi32>, tensor<8x8xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// So is one whose place is not known.
// CHECK-LABEL: func.func @unknown
// CHECK: stablehlo.scatter
func.func @unknown(%x: tensor<8x9xf32>, %i: tensor<1xi32>, %y: tensor<8x8xf32>) -> tensor<8x9xf32> {
  %r = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [1]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) : (tensor<8x9xf32>, tensor<1xi32>, tensor<8x8xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// Bounds that keep it inside are enough.
// CHECK-LABEL: func.func @bounded
// CHECK-NOT: stablehlo.scatter
// CHECK: stablehlo.dynamic_slice
// CHECK: stablehlo.multiply
// CHECK: stablehlo.dynamic_update_slice
func.func @bounded(%x: tensor<8x9xf32>, %i: tensor<1xi32>, %y: tensor<9xf32>) -> tensor<8x9xf32> {
  %zero = stablehlo.constant dense<0> : tensor<1xi32>
  %most = stablehlo.constant dense<7> : tensor<1xi32>
  %row = stablehlo.clamp %zero, %i, %most : tensor<1xi32>
  %r = "stablehlo.scatter"(%x, %row, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.multiply %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<8x9xf32>, tensor<1xi32>, tensor<9xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}
