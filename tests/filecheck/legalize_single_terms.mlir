// RUN: hloforge opt %s --pass=legalize-single-terms | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.reduce(
// CHECK-DAG: stablehlo.reshape %{{.+}} : (tensor<1857x3x1xf32>) -> tensor<1857x3xf32>
// CHECK-DAG: stablehlo.broadcast_in_dim %{{.+}}, dims = [] : (tensor<f32>) -> tensor<1857x3xf32>
// CHECK: stablehlo.add %{{.+}}, %{{.+}} : tensor<1857x3xf32>
func.func @main(%x: tensor<1857x3x1xf32>, %start: tensor<f32>) -> tensor<1857x3xf32> {
  %s = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [2]
    : (tensor<1857x3x1xf32>, tensor<f32>) -> tensor<1857x3xf32>
  return %s : tensor<1857x3xf32>
}

// An extreme with its place.
// CHECK-LABEL: func.func @argmax
// CHECK-NOT: stablehlo.reduce(
// CHECK: stablehlo.compare GE, %{{.+}} : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xi1>
// CHECK: stablehlo.select %{{.+}} : tensor<7xi1>, tensor<7xi32>
func.func @argmax(%x: tensor<7x1xf32>, %n: tensor<7x1xi32>, %a: tensor<f32>, %b: tensor<i32>)
    -> (tensor<7xf32>, tensor<7xi32>) {
  %m:2 = stablehlo.reduce(%x init: %a), (%n init: %b) across dimensions = [1]
    : (tensor<7x1xf32>, tensor<7x1xi32>, tensor<f32>, tensor<i32>) -> (tensor<7xf32>, tensor<7xi32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %c, %p, %q : tensor<i1>, tensor<f32>
      %w = stablehlo.select %c, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
  return %m#0, %m#1 : tensor<7xf32>, tensor<7xi32>
}

// Several terms.
// CHECK-LABEL: func.func @rows
// CHECK: stablehlo.reduce(
func.func @rows(%x: tensor<7x2xf32>, %start: tensor<f32>) -> tensor<7xf32> {
  %s = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1]
    : (tensor<7x2xf32>, tensor<f32>) -> tensor<7xf32>
  return %s : tensor<7xf32>
}
