// RUN: hloforge opt %s --pass=lower-sdy | filecheck %s --implicit-check-not=sdy.sharding_constraint --implicit-check-not=sdy.manual_computation

// CHECK-LABEL: func.func @main
// CHECK: [[B:%.+]] = stablehlo.negate %arg0 : tensor<8xf32>
// CHECK: return [[B]]
module {
  sdy.mesh @mesh = <["x"=1]>
  func.func @main(%0: tensor<8xf32>) -> tensor<8xf32> {
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
        manual_axes={"x"} (%a: tensor<8xf32>) {
      %b = stablehlo.negate %a : tensor<8xf32>
      sdy.return %b : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}
