"""Functions of one number, which branch: all of its bits beside those of arrays, numpy's, and a wider type's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import mpmath
import numpy as np
import pytest

import hloforge
from tests.elementwise import worst
from tests.pipelines.codegen.elements.loops import evaluate
from tests.pipelines.codegen.elements.xla_reference import assert_equal, pairs, xla
from tests.pipelines.codegen.whole_programs import compiled

Array = np.ndarray[Any, Any]
ALONE = {"elements": 1}


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


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["power"])
def test_special_pairs(op: str, element: str) -> None:
    inputs = pairs(element)
    want, got = xla(f"stablehlo.{op}", inputs, element), evaluate(op, inputs, element, ALONE)
    # Results that are subnormal are flushed, or not, by the way that they are computed.
    least = {"f16": 2.0**-14, "f64": 2.0**-1022}.get(element, 2.0**-120)
    size, own = (np.abs(array.astype(np.float64)) for array in (want, got))
    kept = (size == own) | ~((size < least) | (own < least))
    assert_equal(got[kept], want[kept], [array[kept] for array in inputs], ulps=3)


def _exactly(function: Any, *inputs: Array) -> Array:
    """By mpmath, in digits of an extended double."""
    with mpmath.workdps(40):
        exact = [function(*(mpmath.mpf(float(one)) for one in ones)) for ones in zip(*inputs, strict=True)]
        high = np.array([float(number) for number in exact])
        low = [float(number - mpmath.mpf(top)) for number, top in zip(exact, high, strict=True)]
    return high.astype(np.longdouble) + np.array(low)


def test_errors_of_powers() -> None:
    random, count = np.random.default_rng(4), 400
    near = 1 + random.uniform(-1, 1, count) * 2.0 ** random.uniform(-50, -3, count)
    x = np.concatenate([random.uniform(0.01, 20, count), 2.0 ** random.uniform(-1070, 1020, count), near])
    y = np.concatenate([random.uniform(-25, 25, count), random.uniform(-1, 1, count), random.normal(size=count) * 1e5])
    kept = np.abs(np.log(x) * y) < 708
    x, y = x[kept], y[kept]
    assert worst(evaluate("power", [x, y], "f64", ALONE, flushing=False), _exactly(lambda x, y: x**y, x, y)) < 0.51
    short, exponent = (random.uniform(*bounds, 20_000).astype(np.float32) for bounds in ((0.01, 20), (-25, 25)))
    truth = np.power(short.astype(np.float64), exponent.astype(np.float64))
    assert worst(evaluate("power", [short, exponent], "f32", ALONE), truth) < 0.502


def test_powers_that_are_infinite_or_no_normal_numbers() -> None:
    x, y = np.array([2.0, 2.0, 2.0, 10.0, 0.5]), np.array([1023.5, 1024.0, -1060.25, -400.0, -1e300])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(evaluate("power", [x, y], "f64", ALONE, flushing=False), x**y, rtol=1e-14)


def test_a_power_has_the_same_bits_in_each_loop() -> None:
    """The operation's shape decides, not the loop that it is computed in: elements of a batch and of a chain."""
    x = np.random.default_rng(5).uniform(0.1, 9, 8)
    np.testing.assert_array_equal(_each(lambda x: x**1.3, x), evaluate("power", [x, np.full(8, 1.3)], "f64", ALONE))
