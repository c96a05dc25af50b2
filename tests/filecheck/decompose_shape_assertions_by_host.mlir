// RUN: hloforge opt %s "--pass=decompose-shape-assertions{by-host}" | filecheck %s

// Where no operation asserts, a function of the host does.
// CHECK-LABEL: func.func @main
// CHECK: [[OK:%.+]] = stablehlo.compare
// CHECK: stablehlo.custom_call @hloforge.host_call([[OK]]) {has_side_effect = true, hloforge.host_call = "{{.*}}too many rows{{.*}}hloforge.check
func.func @main(%n: tensor<i64>) -> tensor<i64> {
  %most = stablehlo.constant dense<20> : tensor<i64>
  %fits = stablehlo.compare LE, %n, %most : (tensor<i64>, tensor<i64>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%fits) {error_message = "too many rows", has_side_effect = true} : (tensor<i1>) -> ()
  return %n : tensor<i64>
}
