// Readers of a result of a dispatch region that an equal operation writes too get the region's first result.
// cause: CSE finds the two writes equal, so that two results of the flow.dispatch.region are one value. Its
// cause: canonicalization then drops one of them and asks for the new number of the kept one under the number of the
// cause: dropped one, so that its readers get the first result. Where both have one type it is wrong without a word;
// cause: otherwise the module is invalid.
// fault: wrong
// input: 4xf32=1 2 3 4
// expected: 4xf32=2 3 4 5
// expected: 4xf32=2 4 6 8
// expected: 4xf32=2 4 6 8
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r:3 = flow.dispatch.region -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %at = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant dense<1.0> : vector<4xf32>
    %v = vector.transfer_read %x[%at], %zero {in_bounds = [true]} : tensor<4xf32>, vector<4xf32>
    %more = arith.addf %v, %one : vector<4xf32>
    %twice = arith.addf %v, %v : vector<4xf32>
    %e = tensor.empty() : tensor<4xf32>
    %a = vector.transfer_write %more, %e[%at] {in_bounds = [true]} : vector<4xf32>, tensor<4xf32>
    %b = vector.transfer_write %twice, %e[%at] {in_bounds = [true]} : vector<4xf32>, tensor<4xf32>
    %c = vector.transfer_write %twice, %e[%at] {in_bounds = [true]} : vector<4xf32>, tensor<4xf32>
    flow.return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
