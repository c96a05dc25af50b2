"""legalize-promotions: reductions that compute in a wider type than their operands', against numpy in that type."""

from __future__ import annotations

import numpy as np

import hloforge

TEXT = """func.func @main(%x: tensor<3x40xi8>, %y: tensor<6xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>,
    %s: tensor<3x20xi8>) -> (tensor<3xi32>, tensor<3x39xi32>, tensor<6xf64>, tensor<3x40xi32>, tensor<6xf64>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<0> : tensor<i8>
  %a = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 1>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %0 = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %0 : tensor<i32>
  }) : (tensor<3x40xi8>, tensor<i32>) -> tensor<3xi32>
  %b = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %0 = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %0 : tensor<i32>
  }) : (tensor<3x40xi8>, tensor<i32>) -> tensor<3x39xi32>
  %c = "stablehlo.scatter"(%y, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f64>, %q: tensor<f64>):
      %0 = stablehlo.add %p, %q : tensor<f64>
      stablehlo.return %0 : tensor<f64>
  }) : (tensor<6xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<6xf64>
  %d = "stablehlo.select_and_scatter"(%x, %s, %n) <{window_dimensions = array<i64: 1, 3>,
      window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%p: tensor<i8>, %q: tensor<i8>):
      %0 = stablehlo.compare GE, %p, %q : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %0 : tensor<i1>
  }, {
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %0 = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %0 : tensor<i32>
  }) : (tensor<3x40xi8>, tensor<3x20xi8>, tensor<i8>) -> tensor<3x40xi32>
  %e = "stablehlo.all_reduce"(%y) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%p: tensor<f64>, %q: tensor<f64>):
      %0 = stablehlo.add %p, %q : tensor<f64>
      stablehlo.return %0 : tensor<f64>
  }) : (tensor<6xf32>) -> tensor<6xf64>
  return %a, %b, %c, %d, %e : tensor<3xi32>, tensor<3x39xi32>, tensor<6xf64>, tensor<3x40xi32>, tensor<6xf64>
}"""


def test_reductions_compute_in_the_type_of_their_results() -> None:
    random = np.random.default_rng(0)
    x, s = (random.integers(100, 128, dims).astype(np.int8) for dims in ((3, 40), (3, 20)))
    y, u = (random.standard_normal(size).astype(np.float32) for size in (6, 3))
    i = np.array([[2], [2], [9]], np.int32)
    sums, windows, scattered, pooled, reduced = hloforge.compile(TEXT)(x, y, i, u, s)
    wide = x.astype(np.int32)
    np.testing.assert_array_equal(sums, wide.sum(1))
    np.testing.assert_array_equal(windows, wide[:, 1:] + wide[:, :-1])
    want = y.astype(np.float64)
    want[2] += u[0].astype(np.float64) + u[1]
    np.testing.assert_allclose(scattered, want, rtol=1e-15)
    np.testing.assert_array_equal(pooled, _pooled(wide, s))
    np.testing.assert_array_equal(reduced, y.astype(np.float64))


def _pooled(x: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Each source at the first largest of three elements, every second of which starts a window."""
    made = np.zeros(x.shape, np.int32)
    for row in range(3):
        for window in range(20):
            first = max(2 * window - 1, 0)
            made[row, first + np.argmax(x[row, first : 2 * window + 2])] += s[row, window]
    return made
