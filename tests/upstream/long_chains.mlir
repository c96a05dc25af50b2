// A chain of 8,000 elementwise operations takes more than 8 seconds to compile.
// cause: Elementwise operations are fused two at a time, each time with a copy of the region that is fused already, so
// cause: that the time is quadratic: where 1,000 operations took 2 s, 4,000 took 11 s and 8,000 took 36 s. An
// cause: optimization barrier at each 512th operation makes it linear.
// fault: slow "8"
func.func private @f0(%v0: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %v1 = stablehlo.multiply %v0, %y : tensor<64xf32>
  %v2 = stablehlo.add %v1, %y : tensor<64xf32>
  %v3 = stablehlo.multiply %v2, %y : tensor<64xf32>
  %v4 = stablehlo.add %v3, %y : tensor<64xf32>
  %v5 = stablehlo.multiply %v4, %y : tensor<64xf32>
  %v6 = stablehlo.add %v5, %y : tensor<64xf32>
  %v7 = stablehlo.multiply %v6, %y : tensor<64xf32>
  %v8 = stablehlo.add %v7, %y : tensor<64xf32>
  return %v8 : tensor<64xf32>
}
func.func private @f1(%v0: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %v1 = func.call @f0(%v0, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v2 = func.call @f0(%v1, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v3 = func.call @f0(%v2, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v4 = func.call @f0(%v3, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v5 = func.call @f0(%v4, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v6 = func.call @f0(%v5, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v7 = func.call @f0(%v6, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v8 = func.call @f0(%v7, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v9 = func.call @f0(%v8, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v10 = func.call @f0(%v9, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %v10 : tensor<64xf32>
}
func.func private @f2(%v0: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %v1 = func.call @f1(%v0, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v2 = func.call @f1(%v1, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v3 = func.call @f1(%v2, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v4 = func.call @f1(%v3, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v5 = func.call @f1(%v4, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v6 = func.call @f1(%v5, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v7 = func.call @f1(%v6, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v8 = func.call @f1(%v7, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v9 = func.call @f1(%v8, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v10 = func.call @f1(%v9, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %v10 : tensor<64xf32>
}
func.func private @f3(%v0: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %v1 = func.call @f2(%v0, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v2 = func.call @f2(%v1, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v3 = func.call @f2(%v2, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v4 = func.call @f2(%v3, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v5 = func.call @f2(%v4, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v6 = func.call @f2(%v5, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v7 = func.call @f2(%v6, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v8 = func.call @f2(%v7, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v9 = func.call @f2(%v8, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %v10 = func.call @f2(%v9, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %v10 : tensor<64xf32>
}
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %r = func.call @f3(%x, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
