module @sample {
  func.func public @main(%x: tensor<2x3xf32>, %n: tensor<i32>)
      -> (tensor<2x3xf32>, tensor<2xf32>, tensor<3x2xf32>) {
    %c = stablehlo.constant dense<[[1.0, -2.5, 3.0], [4.0, 0.5, 0.03125]]> : tensor<2x3xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.add %x, %c : tensor<2x3xf32>
    %r = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %loop:2 = stablehlo.while(%k = %n, %v = %sum) : tensor<i32>, tensor<2x3xf32>
      cond {
      %limit = stablehlo.constant dense<4> : tensor<i32>
      %p = stablehlo.compare LT, %k, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %w = stablehlo.add %v, %v : tensor<2x3xf32>
      stablehlo.return %next, %w : tensor<i32>, tensor<2x3xf32>
    }
    %t = stablehlo.transpose %c, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %b = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
    %s = stablehlo.dynamic_slice %b, %n, %n, sizes = [3, 2]
      : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    %o = stablehlo.maximum %t, %s : tensor<3x2xf32>
    return %loop#1, %r, %o : tensor<2x3xf32>, tensor<2xf32>, tensor<3x2xf32>
  }
}
