// An array that a loop takes and may return unchanged is freed too early.
// device: local-task
// fault: run-error "transient buffer has not been committed"
// input: 8xf32=0.25 0.5 0.75 1 1.25 1.5 1.75 2
// expected: 8xf32=71 71.375 71.25 70.625 69.5 67.875 65.75 63.125
module @returned_unchanged {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<8xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
    %1 = stablehlo.multiply %0, %cst : tensor<8xf32>
    %2 = stablehlo.reverse %arg0, dims = [0] : tensor<8xf32>
    %cst_0 = stablehlo.constant dense<3.000000e+00> : tensor<8xf32>
    %3 = stablehlo.multiply %2, %cst_0 : tensor<8xf32>
    %4 = stablehlo.add %3, %arg0 : tensor<8xf32>
    %5 = stablehlo.reverse %1, dims = [0] : tensor<8xf32>
    %6 = stablehlo.while(%iterArg = %4) : tensor<8xf32>
    cond {
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %17 = stablehlo.reduce(%iterArg init: %cst_1) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %18 = stablehlo.compare LT, %17, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    } do {
      %17 = stablehlo.reverse %iterArg, dims = [0] : tensor<8xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
      %18 = stablehlo.multiply %17, %cst_1 : tensor<8xf32>
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
      %19 = stablehlo.add %18, %cst_2 : tensor<8xf32>
      stablehlo.return %19 : tensor<8xf32>
    }
    %7 = stablehlo.add %5, %6 : tensor<8xf32>
    %8 = stablehlo.while(%iterArg = %7) : tensor<8xf32>
    cond {
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %17 = stablehlo.reduce(%iterArg init: %cst_1) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
      %18 = stablehlo.compare LT, %17, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    } do {
      %17 = stablehlo.reverse %iterArg, dims = [0] : tensor<8xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
      %18 = stablehlo.multiply %17, %cst_1 : tensor<8xf32>
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
      %19 = stablehlo.add %18, %cst_2 : tensor<8xf32>
      stablehlo.return %19 : tensor<8xf32>
    }
    %9 = stablehlo.while(%iterArg = %1) : tensor<8xf32>
    cond {
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %17 = stablehlo.reduce(%iterArg init: %cst_1) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %18 = stablehlo.compare LT, %17, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    } do {
      %17 = stablehlo.reverse %iterArg, dims = [0] : tensor<8xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
      %18 = stablehlo.multiply %17, %cst_1 : tensor<8xf32>
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
      %19 = stablehlo.add %18, %cst_2 : tensor<8xf32>
      stablehlo.return %19 : tensor<8xf32>
    }
    %10 = stablehlo.reverse %9, dims = [0] : tensor<8xf32>
    %11 = stablehlo.add %10, %4 : tensor<8xf32>
    %12 = stablehlo.while(%iterArg = %11) : tensor<8xf32>
    cond {
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %17 = stablehlo.reduce(%iterArg init: %cst_1) applies stablehlo.maximum across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<2.000000e+01> : tensor<f32>
      %18 = stablehlo.compare LT, %17, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    } do {
      %17 = stablehlo.reverse %iterArg, dims = [0] : tensor<8xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<8xf32>
      %18 = stablehlo.multiply %17, %cst_1 : tensor<8xf32>
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
      %19 = stablehlo.add %18, %cst_2 : tensor<8xf32>
      stablehlo.return %19 : tensor<8xf32>
    }
    %13 = stablehlo.add %8, %12 : tensor<8xf32>
    %14 = stablehlo.reverse %4, dims = [0] : tensor<8xf32>
    %15 = stablehlo.multiply %1, %14 : tensor<8xf32>
    %16 = stablehlo.add %13, %15 : tensor<8xf32>
    return %16 : tensor<8xf32>
  }
}
