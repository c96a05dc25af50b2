// RUN: hloforge opt %s --pass=legalize-paddings | filecheck %s

// A part of a complex number that was made of parts is that part.
// CHECK-LABEL: func.func @main
// CHECK: [[P:%.+]] = stablehlo.pad %arg0
// CHECK: [[R:%.+]] = stablehlo.reshape
// CHECK-NEXT: [[B:%.+]] = stablehlo.optimization_barrier [[R]] : tensor<1x31xf32>
// CHECK-NEXT: stablehlo.pad [[B]]
func.func @main(%x: tensor<16xf32>, %y: tensor<31xf32>) -> tensor<1x32xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [0], high = [0], interior = [1] : (tensor<16xf32>, tensor<f32>) -> tensor<31xf32>
  %c = stablehlo.complex %y, %p : tensor<31xcomplex<f32>>
  %i = stablehlo.imag %c : (tensor<31xcomplex<f32>>) -> tensor<31xf32>
  %r = stablehlo.reshape %i : (tensor<31xf32>) -> tensor<1x31xf32>
  %q = stablehlo.pad %r, %z, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<1x31xf32>, tensor<f32>) -> tensor<1x32xf32>
  return %q : tensor<1x32xf32>
}

// What a padding cuts off is cut off before; with steps, as many elements as it takes.
// CHECK-LABEL: func.func @cuts
// CHECK: [[S:%.+]] = stablehlo.slice %arg0 [1:4] : (tensor<4xf32>) -> tensor<3xf32>
// CHECK: stablehlo.pad [[S]], {{.*}}, low = [0], high = [2], interior = [0]
// CHECK: [[T:%.+]] = stablehlo.slice %arg0 [1:3] : (tensor<4xf32>) -> tensor<2xf32>
// CHECK: stablehlo.pad [[T]], {{.*}}, low = [2], high = [1], interior = [2]
// CHECK: stablehlo.broadcast_in_dim {{.*}} : (tensor<f32>) -> tensor<1xf32>
func.func @cuts(%x: tensor<4xf32>) -> (tensor<5xf32>, tensor<7xf32>, tensor<1xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [-1], high = [2], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  %q = stablehlo.pad %x, %z, low = [-1], high = [-2], interior = [2] : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  %r = stablehlo.pad %x, %z, low = [-4], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<1xf32>
  return %p, %q, %r : tensor<5xf32>, tensor<7xf32>, tensor<1xf32>
}

// IREE pads windows with edges itself: of several arrays each.
// CHECK-LABEL: func.func @windows
// CHECK: [[P:%.+]] = stablehlo.pad %arg0
// CHECK-NEXT: [[B:%.+]] = stablehlo.optimization_barrier [[P]] : tensor<7xf32>
// CHECK-NEXT: "stablehlo.reduce_window"([[B]], %arg1,
func.func @windows(%x: tensor<4xf32>, %y: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [0], high = [0], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  %q:2 = "stablehlo.reduce_window"(%p, %y, %z, %z) <{padding = dense<[[1, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %s = stablehlo.add %a, %c : tensor<f32>
    %t = stablehlo.add %b, %d : tensor<f32>
    stablehlo.return %s, %t : tensor<f32>, tensor<f32>
  }) : (tensor<7xf32>, tensor<7xf32>, tensor<f32>, tensor<f32>) -> (tensor<7xf32>, tensor<7xf32>)
  return %q#0, %q#1 : tensor<7xf32>, tensor<7xf32>
}
