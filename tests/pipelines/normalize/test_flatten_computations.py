"""flatten-computations: branches and loops in computations, judged by XLA's client, numpy and the interpreter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hloforge
from tests.engines import shared_reference

X = np.random.default_rng(3).integers(-9, 90, (5, 7)).astype(np.int32)
ZERO = np.int32(0)


def _larger(a: Any, b: Any) -> Any:
    return lax.cond(a > b, lambda: a, lambda: b)


def _by_index(a: Any, b: Any) -> Any:
    """The larger one, by a branch for each of three cases, and one in another."""
    number = jnp.sign(a - b) + 1
    return lax.switch(number, [lambda: b, lambda: a, lambda: lax.cond(b < 0, lambda: a, lambda: jnp.maximum(a, b))])


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "reduce": lambda x: lax.reduce(x, ZERO, _larger, (1,)),
    "window": lambda x: lax.reduce_window(x, ZERO, _larger, (2, 3), (1, 2), "SAME"),
    "pair": lambda x: lax.reduce(
        (x, -x), (ZERO, ZERO), lambda a, b: (_larger(a[0], b[0]), jnp.minimum(a[1], b[1])), (0, 1)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_branches(name: str) -> None:
    found, wanted = hloforge.jit(PROGRAMS[name])(X), jax.jit(PROGRAMS[name])(X)
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_case() -> None:
    """XLA's client aborts on it; numpy knows the largest number."""
    found = hloforge.jit(lambda x: lax.reduce(x, np.int32(-100), _by_index, (0,)))(X)
    np.testing.assert_array_equal(found, X.max(0))


def test_loops_in_reductions_and_windows() -> None:
    """By the greatest common divisor, of which XLA's client makes no code."""
    x = np.abs(X) * 6

    def both(a: Any) -> Any:
        rows = lax.reduce(a, ZERO, lambda p, q: jnp.gcd(p, q), (1,))
        windows = lax.reduce_window(a, ZERO, lambda p, q: jnp.gcd(p, q), (1, 3), (1, 2), ((0, 0), (1, 0)))
        return rows, windows

    rows, windows = hloforge.jit(both)(x)
    assert np.asarray(rows).tolist() == [math.gcd(*map(int, row)) for row in x]
    padded = np.pad(x, ((0, 0), (1, 0)))
    assert np.asarray(windows).tolist() == [
        [math.gcd(*map(int, row[n : n + 3])) for n in range(0, 6, 2)] for row in padded
    ]


SORT = """func.func @main(%x: tensor<5x7xi32>) -> tensor<5x7xi32> {
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %g = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %w = "stablehlo.if"(%g) ({
        %d = stablehlo.compare NE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %d : tensor<i1>
      }, {
        %d = stablehlo.constant dense<false> : tensor<i1>
        stablehlo.return %d : tensor<i1>
      }) : (tensor<i1>) -> tensor<i1>
      stablehlo.return %w : tensor<i1>
  }) : (tensor<5x7xi32>) -> tensor<5x7xi32>
  return %s : tensor<5x7xi32>
}"""
ARRAYS = """func.func @main(%x: tensor<5x7xi32>) -> tensor<5xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.reduce(%x init: %zero) across dimensions = [1] : (tensor<5x7xi32>, tensor<i32>) -> tensor<5xi32>
    reducer(%a: tensor<i32>, %b: tensor<i32>) {
      %p = stablehlo.reshape %a : (tensor<i32>) -> tensor<1xi32>
      %q = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
      %c = stablehlo.concatenate %p, %q, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %s = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %s : tensor<i32>
    }
  return %r : tensor<5xi32>
}"""


@pytest.mark.parametrize(("text", "want"), [(SORT, -np.sort(-X, 1)), (ARRAYS, X.sum(1))], ids=["sort", "arrays"])
def test_texts(text: str, want: Any) -> None:
    program = hloforge.read(text)
    np.testing.assert_array_equal(hloforge.compile(program, cache=False).load()(X), want)
    np.testing.assert_array_equal(np.asarray(shared_reference("interpreter").prepare(program)(X)), want)
