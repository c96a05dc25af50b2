// RUN: hloforge opt %s --pass=decompose-library-calls | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[A:%.+]] = stablehlo.reshape %arg0 : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
// CHECK: [[F:%.+]]:2 = stablehlo.custom_call @hloforge.cholesky([[A]]) {{.*}}backend_config = {lower = true}
// CHECK: [[LOWER:%.+]] = stablehlo.compare GE
// CHECK: [[U:%.+]] = stablehlo.reshape [[F]]#0
// CHECK: [[L:%.+]] = stablehlo.select [[LOWER]], [[U]], %arg0
// CHECK: [[INFO:%.+]] = stablehlo.reshape [[F]]#1
// CHECK: return [[L]], [[INFO]] : tensor<4x4xf32>, tensor<i32>
func.func @main(%a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>) {
  %r:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32, backend_config = {uplo = 76 : ui8},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  return %r#0, %r#1 : tensor<4x4xf32>, tensor<i32>
}

// Eigenvectors that are chosen and dropped are not computed.
// CHECK-LABEL: func.func @eigenvalues
// CHECK: stablehlo.custom_call @hloforge.tridiagonal_ql({{%[^,]+}}, {{%[^,]+}}) {{.*}} : (tensor<1x4xf32>, tensor<1x4xf32>)
// CHECK-LABEL: func.func @eigenvectors
// CHECK: stablehlo.custom_call @hloforge.tridiagonal({{.*}} : (tensor<1x4x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x3x4xf32>)
// CHECK: stablehlo.custom_call @hloforge.tridiagonal_eigenvectors({{.*}} : (tensor<1x4xf32>, tensor<1x4xf32>)
// CHECK: stablehlo.custom_call @hloforge.reflected({{.*}}offset = 1
func.func @eigenvalues(%a: tensor<4x4xf32>, %p: tensor<4x4xi1>) -> tensor<4xf32> {
  %r:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {api_version = 4 : i32,
    backend_config = {mode = 86 : ui8, uplo = 76 : ui8},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
  %v = stablehlo.select %p, %r#0, %a : tensor<4x4xi1>, tensor<4x4xf32>
  return %r#1 : tensor<4xf32>
}
func.func @eigenvectors(%a: tensor<4x4xf32>, %p: tensor<4x4xi1>) -> tensor<4x4xf32> {
  %r:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {api_version = 4 : i32,
    backend_config = {mode = 86 : ui8, uplo = 76 : ui8},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]}
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
  %v = stablehlo.select %p, %r#0, %a : tensor<4x4xi1>, tensor<4x4xf32>
  return %v : tensor<4x4xf32>
}
