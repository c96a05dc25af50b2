// RUN: hloforge opt %s --pass=dispatch-integer-matmuls | filecheck %s --implicit-check-not=stablehlo.dot_general

// Lines of a pair are interleaved into one vector; sums of their products are made of 16 bits in 32.
// CHECK: "flow.executable"
// CHECK: scf.for
// CHECK: [[EVEN:%.+]] = arith.extsi {{%.+}} : vector<[[N:[0-9]+]]xi8> to vector<[[N]]xi16>
// CHECK: [[ODD:%.+]] = arith.extsi {{%.+}} : vector<[[N]]xi8> to vector<[[N]]xi16>
// CHECK: [[PAIR:%.+]] = vector.interleave [[EVEN]], [[ODD]]
// CHECK: vector.transfer_write [[PAIR]]
// CHECK: scf.for
// CHECK: arith.extsi {{.*}}i16> to {{.*}}i32>
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK-LABEL: func.func @main
// CHECK: [[WIDE:%.+]] = stablehlo.convert %arg0 : (tensor<256x512xi8>) -> tensor<256x512xi16>
// CHECK: [[A:%.+]] = stablehlo.reshape [[WIDE]]
// CHECK: [[B:%.+]] = stablehlo.reshape %arg1
// CHECK: [[Y:%.+]] = "flow.dispatch"({{.*}}[[A]], [[B]])
// CHECK-SAME: hloforge.work = {{[1-9]}}
// CHECK: [[R:%.+]] = stablehlo.reshape [[Y]] {{.*}} -> tensor<256x256xi32>
// CHECK: return [[R]]
func.func @main(%a: tensor<256x512xi8>, %b: tensor<512x256xi8>) -> tensor<256x256xi32> {
  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<256x512xi8>, tensor<512x256xi8>) -> tensor<256x256xi32>
  return %y : tensor<256x256xi32>
}
