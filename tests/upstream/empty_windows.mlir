// Windows of two arrays without elements, in padding alone, are not compiled.
// cause: The padding of an empty array becomes an array of another size than the windows are read from.
// fault: compile-error "inferred input/output operand"
func.func @main(%x: tensor<16x0xi8>, %y: tensor<16x0xi8>) -> (tensor<5x1xi8>, tensor<5x1xi8>) {
  %c = stablehlo.constant dense<127> : tensor<i8>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %c, %c) <{padding = dense<[[0, -1], [1, 2]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 3, 2>}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>, %d: tensor<i8>, %e: tensor<i8>):
    %m = stablehlo.minimum %a, %d : tensor<i8>
    %n = stablehlo.minimum %b, %e : tensor<i8>
    stablehlo.return %m, %n : tensor<i8>, tensor<i8>
  }) : (tensor<16x0xi8>, tensor<16x0xi8>, tensor<i8>, tensor<i8>) -> (tensor<5x1xi8>, tensor<5x1xi8>)
  return %0#0, %0#1 : tensor<5x1xi8>, tensor<5x1xi8>
}
