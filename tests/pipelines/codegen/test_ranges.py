"""Functions and quotients of numbers whose range is known: the bits that they have of any numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

Array = np.ndarray[Any, Any]
_ENDS = [0.0, -0.0, 87.3, 87.4, 88.0, 88.4, 89.0, 103.0, 104.0, 1e4, np.inf, -np.inf, np.nan, 1e-30, -1e30]
_exp = jnp.exp


def _run(function: Callable[..., Any], *arguments: Array) -> Array:
    text = jax.jit(function).lower(*arguments).as_text()
    return np.asarray(compiled(hloforge.read(text.encode())).load()(*arguments))


def _numbers() -> Array:
    random = np.random.default_rng(5)
    return np.concatenate([random.uniform(-100, 100, 3000), random.normal(size=3000), _ENDS * 8]).astype(np.float32)


@pytest.mark.parametrize(
    "of",
    [
        lambda x: -abs(x),
        lambda x: -(x * x),
        lambda x: (x * x) / -2.0,
        lambda x: jnp.minimum(x, 0),
        lambda x: x.reshape(8, -1) - x.reshape(8, -1).max(1, keepdims=True),
        lambda x: x.reshape(2, 4, -1) - x.reshape(2, 4, -1).max((0, 2), keepdims=True),
    ],
)
def test_exponentials_of_what_is_not_positive(of: Callable[[Any], Any]) -> None:
    x = _numbers()
    given = _run(of, x)
    np.testing.assert_array_equal(_run(lambda x: _exp(of(x)), x), _run(_exp, given))


@pytest.mark.parametrize(
    "of",
    [
        lambda x: -x,
        lambda x: x - jnp.roll(x.reshape(8, -1).max(1, keepdims=True), 1).repeat(x.size // 8, 1).reshape(-1),
        lambda x: x.reshape(8, -1)[:, ::-1] - x.reshape(8, -1)[::-1].max(1, keepdims=True),
        lambda x: x.reshape(8, -1) - x.reshape(8, -1)[:, :9].max(1, keepdims=True),
        lambda x: 1 / -jnp.maximum(x, 0),
    ],
)
def test_exponentials_of_what_may_be_positive(of: Callable[[Any], Any]) -> None:
    """Forms beside those that are known: a maximum of other elements, a quotient by a zero of either sign."""
    x = _numbers()
    given = _run(of, x)
    np.testing.assert_array_equal(_run(lambda x: _exp(of(x)), x), _run(_exp, given))


@pytest.mark.parametrize(("shape", "dims"), [((64, 1001), 1), ((12, 33, 40), (1, 2)), ((6, 7, 50), 1)])
def test_shares_are_divided_exactly(shape: tuple[int, ...], dims: Any) -> None:
    x = np.random.default_rng(1).normal(0, 20, shape).astype(np.float32)
    power = _run(lambda x: _exp(x - x.max(dims, keepdims=True)), x)
    total = _run(lambda x: _exp(x - x.max(dims, keepdims=True)).sum(dims, keepdims=True), x)
    got = _run(lambda x: jax.nn.softmax(x, dims), x)
    is_known = power > 2.0**-100
    np.testing.assert_array_equal(got[is_known], (power / total)[is_known])


@pytest.mark.parametrize("divisor", [0.0471, -3.0, 1e-18, 2e19])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32])
def test_integers_by_a_constant(dtype: Any, divisor: float) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(2).integers(limits.min, limits.max, 5000, dtype, endpoint=True)
    y = np.float32(divisor)
    expected = x.astype(np.float32) / y
    found = _run(lambda x: x.astype(jnp.float32) / y, x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_logistic_at_its_ends() -> None:
    x = np.concatenate([_numbers(), np.linspace(86, 90, 999, dtype=np.float32)])
    with np.errstate(over="ignore"):
        expected = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    expected[abs(expected) < np.finfo(np.float32).tiny] = 0
    np.testing.assert_allclose(_run(jax.nn.sigmoid, x), expected, 3e-7, 1.2e-38)
