"""Functions of one number, which branch: all of its bits beside those of arrays, numpy's, and a wider type's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

Array = np.ndarray[Any, Any]


def _each(function: Any, *arguments: Array) -> Array:
    """A function of scalars, called for one element after the other within a program."""
    with jax.enable_x64(True):
        mapped = jax.jit(lambda *arrays: jax.lax.map(lambda one: function(*one), arrays))
        program = hloforge.as_program(mapped.lower(*arguments))
    return np.asarray(compiled(program).load()(*arguments))


def _floats(dtype: Any, count: int, seed: int) -> Array:
    """Any bits, and ordinary numbers."""
    random = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    special = [0.0, -0.0, 1.0, -1.0, 3.0, 0.5, np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore"):
        ordinary = (random.standard_normal(count) * 10.0 ** random.integers(-3, 6, count)).astype(dtype)
    parts = [
        np.frombuffer(random.bytes(size * count), f"u{size}").view(dtype),
        ordinary,
        np.array(special, dtype),
    ]
    return random.permutation(np.concatenate(parts))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_remainders_are_exact(dtype: Any) -> None:
    x, y = _floats(dtype, 3000, 1), _floats(dtype, 3000, 2)
    # Quotients of any number of bits, of small divisors and subnormal ones too.
    x = np.concatenate([x, x[:2000], np.full(4, ml_dtypes.finfo(dtype).max, dtype)])
    tiny = np.arange(1, 5).astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    y = np.concatenate([y, np.abs(y[:2000]).astype(dtype), tiny])
    got = _each(jax.lax.rem, x, y)
    with np.errstate(all="ignore"):
        want = np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    is_nan = np.isnan(want.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), is_nan)
    bits = f"u{np.dtype(dtype).itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~is_nan], want.view(bits)[~is_nan])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_any_size(name: str) -> None:
    x = _floats(np.float32, 3000, 3)
    edges = np.float32(2.0**20) * np.linspace(0.999, 1.001, 50, dtype=np.float32)
    x = np.concatenate([x, edges, np.float32(np.pi / 2) * np.arange(-60, 60, dtype=np.float32)])
    got = _each(getattr(jnp, name), x)
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(getattr(jnp, name)).lower(x))
    many = np.asarray(compiled(program).load()(x))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(many))
    known = np.abs(x) < 1e6
    want = getattr(np, name)(x[known].astype(np.float64))
    np.testing.assert_allclose(got[known], want, rtol=2.0**-23, atol=2.0**-126)
    np.testing.assert_array_max_ulp(got[~np.isnan(got)], many[~np.isnan(many)], 1)


def test_remainders_of_a_product_of_one_number() -> None:
    """What follows a product's sums is computed of vectors of them, which code for one number has none for."""
    x, w = np.random.default_rng(0).standard_normal((2, 1, 40))
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(lambda x, w: jax.lax.rem(x @ w.T, jnp.full((1, 1), 0.7))).lower(x, w))
    np.testing.assert_allclose(compiled(program).load()(x, w), np.fmod(x @ w.T, 0.7), rtol=1e-12)
