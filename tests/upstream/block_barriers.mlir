// No barrier stands between the initial positions of an argmax and the code that reads them, for CUDA.
// cause: Thread t stores the initial positions of rows 4t to 4t + 3 in the result, by a masked vector. It then updates
// cause: row t, whose initial position thread t / 4 has stored. The maxima lie in the block's memory, before which there
// cause: is a barrier; for the positions, which lie in the result, there is none.
// target: cuda
// fault: code "cond_br %\d+, \^bb\d+, \^bb\d+\([^\n]*\n *\^bb\d+:[^\n]*\n(?:(?!\^bb|nvvm\.barrier).)*masked\.store[^\n]*ptr<1>(?:(?!nvvm\.barrier).)*load [^\n]*ptr<1> -> i32"
func.func @main(%x: tensor<33x100xf32>) -> tensor<33xi32> {
  %p = stablehlo.iota dim = 1 : tensor<33x100xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %low), (%p init: %zero) across dimensions = [1]
      : (tensor<33x100xf32>, tensor<33x100xi32>, tensor<f32>, tensor<i32>) -> (tensor<33xf32>, tensor<33xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
      %q = stablehlo.select %g, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %q : tensor<f32>, tensor<i32>
    }
  return %r#1 : tensor<33xi32>
}
