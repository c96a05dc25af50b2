// RUN: hloforge opt %s --pass=fuse-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[R:%.+]] = "flow.dispatch.region"() ({
// CHECK: [[VECTOR:%.+]] = vector.transfer_read %arg0
// CHECK: [[LAST:%.+]]:2 = scf.while ([[I:%[a-zA-Z0-9_]+]] = {{%[a-zA-Z0-9_]+}}, [[S:%[a-zA-Z0-9_]+]] = [[VECTOR]]) : (i32, vector<3xf32>)
// CHECK: stablehlo.compare LT
// CHECK: scf.condition({{%.+}}) [[I]], [[S]]
// CHECK: } do {
// CHECK: stablehlo.add
// CHECK: stablehlo.multiply
// CHECK: scf.yield
// CHECK: [[W:%.+]] = vector.transfer_write [[LAST]]#1
// CHECK: "flow.return"([[W]])
// CHECK: return [[R]]
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<100> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<3xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.multiply %s, %s : tensor<3xf32>
    stablehlo.return %next, %t : tensor<i32>, tensor<3xf32>
  }
  return %r#1 : tensor<3xf32>
}
