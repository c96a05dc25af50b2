// RUN: hloforge opt %s --pass=decompose-reduce-precision | filecheck %s --implicit-check-not=stablehlo.reduce_precision

// CHECK-LABEL: func.func @main
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4x[[U:u?i32]]>
// CHECK: stablehlo.constant dense<21>
// CHECK: stablehlo.shift_right_logical [[X]]
// CHECK: stablehlo.and
// CHECK: stablehlo.constant dense<1048575>
// CHECK: stablehlo.add
// CHECK: return {{%.+}} : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.reduce_precision %x, format = e5m2 : tensor<4xf32>
  return %r : tensor<4xf32>
}
