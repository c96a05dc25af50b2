// RUN: hloforge opt %s --pass=decompose-dot-algorithm | filecheck %s --implicit-check-not=algorithm

// CHECK-LABEL: func.func @main
// CHECK-DAG: [[A:%.+]] = stablehlo.convert %arg0 : (tensor<4x4xf32>) -> tensor<4x4xf64>
// CHECK-DAG: [[B:%.+]] = stablehlo.convert %arg1 : (tensor<4x4xf32>) -> tensor<4x4xf64>
// CHECK: [[P:%.+]] = stablehlo.dot_general [[A]], [[B]], contracting_dims = [1] x [0]
// CHECK-SAME: -> tensor<4x4xf64>
// CHECK: [[R:%.+]] = stablehlo.convert [[P]] : (tensor<4x4xf64>) -> tensor<4x4xf32>
// CHECK: return [[R]]
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = f64,
    rhs_precision_type = f64, accumulation_type = f64, lhs_component_count = 1, rhs_component_count = 1,
    num_primitive_operations = 1, allow_imprecise_accumulation = false>
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
