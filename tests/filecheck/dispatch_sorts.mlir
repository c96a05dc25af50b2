// RUN: hloforge opt %s --keep-marks --pass=dispatch-sorts | filecheck %s --implicit-check-not=stablehlo.sort

// Long rows: four digits of eight bits. In each dispatch: clear the counts, count, sum up, move.
// CHECK-LABEL: func.func @main
// CHECK: arith.constant 0 : i32
// CHECK: [[A:%.+]]:2 = "flow.dispatch.workgroups"({{%.+}}, %arg0, %arg1, {{%.+}}) ({
// CHECK-COUNT-5: scf.for
// CHECK: tensor.insert
// CHECK: "flow.return"
// CHECK: hloforge.work
// CHECK: arith.constant 8 : i32
// CHECK: [[B:%.+]]:2 = "flow.dispatch.workgroups"({{%.+}}, [[A]]#0, [[A]]#1, {{%.+}}) ({
// CHECK: arith.constant 16 : i32
// CHECK: [[C:%.+]]:2 = "flow.dispatch.workgroups"({{%.+}}, [[B]]#0, [[B]]#1, {{%.+}}) ({
// CHECK: arith.constant 24 : i32
// CHECK: [[D:%.+]]:2 = "flow.dispatch.workgroups"({{%.+}}, [[C]]#0, [[C]]#1, {{%.+}}) ({
// CHECK-NOT: "flow.dispatch.workgroups"
// CHECK: return [[D]]#0, [[D]]#1
func.func @main(%keys: tensor<1x4000xi32>, %values: tensor<1x4000xi32>) -> (tensor<1x4000xi32>, tensor<1x4000xi32>) {
  %r:2 = "stablehlo.sort"(%keys, %values) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {hloforge.keys = 1 : i64} : (tensor<1x4000xi32>, tensor<1x4000xi32>) -> (tensor<1x4000xi32>, tensor<1x4000xi32>)
  return %r#0, %r#1 : tensor<1x4000xi32>, tensor<1x4000xi32>
}
