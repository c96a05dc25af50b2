"""interchange-loops: all turns of an element in one dispatch give XLA's numbers."""

from __future__ import annotations

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


def text_of(function: Any, *arguments: Any) -> str:
    with jax.enable_x64(True):
        return str(jax.jit(function).lower(*arguments).as_text())


def loops_left(text: str) -> int:
    program = read(text)
    normalize(program.module)
    lower(program.module)
    return len(operations(program.module, {"stablehlo.while"}))


def check(function: Any, *arguments: Any, loops: int = 0, tolerance: float = 0.0) -> None:
    """Compare with XLA's CPU client; count the loops that are left."""
    text = text_of(function, *arguments)
    assert loops_left(text) == loops
    found = jax.tree.leaves(hloforge.compile(text, cache=False).load()(*arguments))
    with jax.enable_x64(True):
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, np.asarray(wanted), rtol=tolerance, atol=tolerance)


def some(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return (RANDOM.random(shape) * 4 + 1).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_newton_steps_of_a_size_without_factors(dtype: Any) -> None:
    def roots(x: Any) -> Any:
        return jax.lax.fori_loop(0, 9, lambda _, y: (y + x / y) * 0.5, x)

    check(roots, some((7, 1009), dtype))


def test_carries_that_change_places_and_numbers_that_are_read_afterwards() -> None:
    def turns(count: Any, x: Any, y: Any, rate: Any, row: Any) -> Any:
        def turn(carried: Any) -> Any:
            at, rate, x, y = carried
            return at + 1, rate * 0.5, y - rate * row, jnp.where(x > y, x, jnp.maximum(y, 0.25)) * at.astype(x.dtype)

        return jax.lax.while_loop(lambda carried: (carried[0] < count) & (carried[1] > 1e-3), turn, (0, rate, x, y))

    arguments = some((40, 33)), -some((40, 33)), np.float32(0.75), some((33,))
    for count in (0, 5, 100):
        check(turns, np.int32(count), *arguments, tolerance=1e-6)


def test_flags_and_special_values() -> None:
    def escape(x: Any, y: Any) -> Any:
        def turn(_: Any, carried: Any) -> Any:
            real, imaginary, inside, count = carried
            real, imaginary = real * real - imaginary * imaginary + x, 2.0 * real * imaginary + y
            inside = inside & (real * real + imaginary * imaginary <= 4.0)
            return real, imaginary, inside, count + inside.astype(jnp.int32)

        first = x, y, jnp.ones(x.shape, bool), jnp.zeros(x.shape, jnp.int32)
        return jax.lax.fori_loop(0, 20, turn, first)[2:]

    x, y = (some((50, 50)) - 3 for _ in range(2))
    x[0, :4], y[1, :4] = (np.nan, np.inf, -np.inf, -0.0), (np.nan, np.inf, -np.inf, -0.0)
    check(escape, x, y)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integers(dtype: Any) -> None:
    def mixed(x: Any, y: Any) -> Any:
        def turn(at: Any, carried: Any) -> Any:
            one, other = carried
            one = one * 5 + jnp.asarray(at, one.dtype)
            return one ^ (one >> 7), jnp.minimum(other, one) + jnp.where(other < one, one << 3, other | 1)

        return jax.lax.fori_loop(0, 6, turn, (x, y))

    info = np.iinfo(dtype)
    x, y = (RANDOM.integers(info.min, info.max, 2000, dtype, endpoint=True) for _ in range(2))
    check(mixed, x, y)


def test_functions_and_loops_in_loops() -> None:
    def relaxed(x: Any, bias: Any) -> Any:
        def outer(_: Any, carried: Any) -> Any:
            inner = jax.lax.fori_loop(0, 3, lambda _, z: jnp.tanh(z) + jnp.exp(-z) + bias[:, None], carried)
            return inner - jnp.mean(inner)

        return jax.lax.fori_loop(0, 2, outer, x)

    check(relaxed, some((64, 40)), some((64,)), loops=1, tolerance=2e-5)


def test_loops_of_other_turns_are_left() -> None:
    def normalized(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: y / jnp.sum(y), x)

    def shifted(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: y + jnp.roll(y, 1), x)

    check(normalized, some((100, 1000)), loops=1, tolerance=1e-5)
    check(shifted, some((100000,)), loops=1)
