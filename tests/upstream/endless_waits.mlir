// A loop that calls a function and waits for its condition gets the same waits until the compiler gives up.
// cause: elide-timepoints gives an operation that reads what a loop began with the timepoint of that value. Inside of
// cause: a loop of blocks the value itself cannot take the carried one's place, so that the wait stays, and the same
// cause: timepoint is joined again in each iteration of the fixed point pipeline. Canonicalization drops it every time.
// target: vulkan
// fault: compile-error "maximum iteration count exceeded"
util.func private @nothing() attributes {inlining.policy = #util.inline.never} {
  %zero = arith.constant 0 : i32
  %kept = util.optimization_barrier %zero : i32
  util.return
}
func.func @main() -> tensor<2xi32> {
  %zeros = stablehlo.constant dense<0> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.iota dim = 0 : tensor<2xi32>
  %r:5 = stablehlo.while(%n = %one, %m = %one, %a = %zeros, %b = %i, %d = %i) : tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
  cond {
    %c = stablehlo.compare LE, %n, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    util.call @nothing() : () -> ()
    %p = stablehlo.compare NE, %d, %zeros, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %s = stablehlo.select %p, %a, %b : tensor<2xi1>, tensor<2xi32>
    %e = stablehlo.compare EQ, %m, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %k = stablehlo.select %e, %one, %n : tensor<i1>, tensor<i32>
    %o = stablehlo.select %e, %n, %k : tensor<i1>, tensor<i32>
    %l = stablehlo.select %e, %n, %m : tensor<i1>, tensor<i32>
    %q = stablehlo.select %e, %m, %l : tensor<i1>, tensor<i32>
    stablehlo.return %o, %q, %a, %s, %d : tensor<i32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
  }
  return %i : tensor<2xi32>
}
