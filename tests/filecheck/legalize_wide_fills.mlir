// RUN: hloforge opt %s --pass=legalize-wide-fills | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[V:%.+]] = stablehlo.bitcast_convert {{.*}} : (tensor<f64>) -> tensor<ui64>
// CHECK: [[X:%.+]] = stablehlo.bitcast_convert %arg0 : (tensor<2xf64>) -> tensor<2xui64>
// CHECK: [[C:%.+]] = stablehlo.xor [[X]]
// CHECK: [[Z:%.+]] = stablehlo.constant dense<0> : tensor<ui64>
// CHECK: [[P:%.+]] = stablehlo.pad [[C]], [[Z]], low = [1], high = [0], interior = [0]
// CHECK: [[R:%.+]] = stablehlo.xor [[P]]
// CHECK: stablehlo.bitcast_convert [[R]] : (tensor<3xui64>) -> tensor<3xf64>
// Both halves of -1 are equal.
// CHECK: stablehlo.pad %arg1
func.func @main(%x: tensor<2xf64>, %y: tensor<2xi64>) -> (tensor<3xf64>, tensor<3xi64>) {
  %v = stablehlo.constant dense<0.5> : tensor<f64>
  %w = stablehlo.constant dense<-1> : tensor<i64>
  %p = stablehlo.pad %x, %v, low = [1], high = [0], interior = [0] : (tensor<2xf64>, tensor<f64>) -> tensor<3xf64>
  %q = stablehlo.pad %y, %w, low = [1], high = [0], interior = [0] : (tensor<2xi64>, tensor<i64>) -> tensor<3xi64>
  return %p, %q : tensor<3xf64>, tensor<3xi64>
}
