// A loop whose first value is read behind it too is refused, because it is to run between parts of one partition.
// cause: The loop has no effects, so that its counter makes it an scf.for that partitions may move across. The product
// cause: before it and the one behind it join one partition, because the latter reads the former's result: an operation
// cause: may join the partition of a direct reader even if it also must precede it by way of a loop. That hazard is
// cause: looked at for arrays that a loop's body captures, not for its operands. It compiles with a call of a function
// cause: in the loop.
// fault: compile-error "circular dependency"
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = stablehlo.dot %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<5> : tensor<i32>
  %r:2 = stablehlo.while(%n = %zero, %c = %y) : tensor<i32>, tensor<8x8xf32>
  cond {
    %b = stablehlo.compare LT, %n, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %b : tensor<i1>
  } do {
    %s = stablehlo.dot %c, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %m = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %m, %s : tensor<i32>, tensor<8x8xf32>
  }
  %z = stablehlo.dot %r#1, %y : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
