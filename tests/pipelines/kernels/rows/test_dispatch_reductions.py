"""dispatch-reductions: reductions over outer dimensions by hand-made loops give numpy's numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import lower
from hloforge.pipelines.normalize.normalization import normalize

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]
Body = Callable[..., Any]


@pytest.fixture(autouse=True)
def _numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of a million numbers near zero has few right digits: which numbers these are depends on no other test."""
    monkeypatch.setattr(sys.modules[__name__], "RANDOM", np.random.default_rng(0))


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def dispatches(text: str) -> int:
    program = read(text)
    normalize(program.module)
    lower(program.module)
    return len(operations(program.module, {"flow.dispatch", "flow.dispatch.workgroups"}))


def lowered(function: Body, *arguments: Any) -> str:
    with jax.enable_x64(True):
        return str(jax.jit(function, keep_unused=True).lower(*arguments).as_text())


def check(function: Body, expected: Body, *arguments: Array, of_our_own: int) -> None:
    """Compile once, compare all results with numpy's in f64; on one thread and on several."""
    text = lowered(function, *arguments)
    assert dispatches(text) == of_our_own
    executable = hloforge.compile(text, cache=False)
    wanted = expected(*(a.astype(np.float64) if a.dtype.kind == "f" else a for a in arguments))
    for device in ("local-sync", "local-task"):
        for found, want in zip(executable.load(device=device)(*arguments), wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-4)


def test_sums_in_every_place_and_of_sizes_that_divide_by_nothing() -> None:
    def sums(x: Any, y: Any, z: Any, w: Any) -> Any:
        return [
            x.sum(0),  # 1,021 rows of 1,000
            x.sum(),
            y.sum((1, 2)),  # between others
            y.sum((0, 1)),
            z.sum(0),  # rows of 3
            z.sum(),
            w.sum(0),  # rows longer than a workgroup takes
        ]

    arrays = floats(1021, 1000), floats(3, 20, 67, 24), floats(30000, 3), floats(17, 10000)
    check(sums, sums, *arrays, of_our_own=7)


def test_other_computations_and_element_types() -> None:
    def results(x: Any, i: Any, j: Any) -> Any:
        return [x.max(0), x.min(0), (x * 0.01 + 1).prod(0), i.sum(0), i.max(0), j.min(0), j.sum()]

    x, i = floats(600, 96), RANDOM.integers(-(2**31), 2**31, (500, 80)).astype(np.int32)
    j = RANDOM.integers(-(2**40), 2**40, (400, 96))
    text = lowered(results, x, i, j)
    found = hloforge.compile(text, cache=False)(x, i, j)
    with jax.enable_x64(True):
        wanted = [np.asarray(value) for value in jax.jit(results)(x, i, j)]
    assert dispatches(text) == 7
    for one, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-4 if want.dtype.kind == "f" else 0)


def test_what_is_computed_on_the_way() -> None:
    def results(x: Any, y: Any, v: Any, s: Any, h: Any) -> Any:
        centred = x - v
        return [
            (centred * centred).sum(0),
            jnp.where(y > s, x, -y).sum(0),
            jnp.maximum(jnp.abs(x / 3), y).max(0),
            (x.reshape(32, 2000) * y.reshape(32, 2000)).sum(),
            h.astype(x.dtype).sum(0),
            jnp.exp(x).sum(0),  # not cheap: left to IREE
        ]

    arrays = floats(1000, 64), floats(1000, 64), floats(64), floats(), floats(1000, 64).astype(np.float16)
    check(results, results, *arrays, of_our_own=5)


def test_special_numbers_and_initial_values() -> None:
    text = """func.func @main(%x: tensor<512x64xf32>, %start: tensor<f32>)
      -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %nothing = stablehlo.constant dense<-0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [0]
        : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
      %1 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
        : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
      %2 = stablehlo.reduce(%x init: %nothing) applies stablehlo.add across dimensions = [0]
        : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
      return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    }"""
    x = np.ones((512, 64), np.float32)
    x[:, 0], x[:, 1] = -0.0, -np.inf
    x[100, 2], x[3, 3], x[4, 3], x[511, 4], x[:, 5] = np.nan, np.inf, -np.inf, 7, -1
    x[77, 5] = -0.0
    assert dispatches(text) == 3
    plain, largest, from_nothing = hloforge.compile(text, cache=False)(x, np.float32(5))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(plain, x.sum(0) + 5)
        np.testing.assert_array_equal(from_nothing, x.sum(0))
    np.testing.assert_array_equal(largest, x.max(0))
    np.testing.assert_array_equal(np.signbit(from_nothing[:2]), [True, True])
    np.testing.assert_array_equal(np.signbit(largest[[0, 5]]), [True, True])


def test_reductions_in_loops_and_beside_products() -> None:
    def looped(x: Any, w: Any) -> Any:
        def turn(number: Any, carried: Any) -> Any:
            x, total = carried
            y = jnp.tanh(x @ w)
            return y - y.mean(0), total + (y * y).sum(0) + number

        return jax.lax.fori_loop(0, 4, turn, (x, jnp.zeros(64, x.dtype)))

    def wanted(x: Any, w: Any) -> Any:
        total = np.zeros(64)
        for number in range(4):
            y = np.tanh(x @ w)
            x, total = y - y.mean(0), total + (y * y).sum(0) + number
        return x, total

    # The product is one as well.
    check(looped, wanted, floats(1000, 64), floats(64, 64) / 8, of_our_own=3)
