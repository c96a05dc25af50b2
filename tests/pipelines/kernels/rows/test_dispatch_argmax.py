"""dispatch-argmax: places of extremes, by ties, NaN and zeros, are those of XLA's CPU client."""

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


def dispatches(text: str) -> int:
    program = read(text)
    normalize(program.module)
    lower(program.module)
    return len(operations(program.module, {"flow.dispatch", "flow.dispatch.workgroups"}))


def text_of(function: Any, *arguments: Any) -> str:
    with jax.enable_x64(True):
        return str(jax.jit(function).lower(*arguments).as_text())


def check(function: Any, *arguments: Any, made: int) -> None:
    text = text_of(function, *arguments)
    assert dispatches(text) == made
    found = jax.tree.leaves(hloforge.compile(text, cache=False).load()(*arguments))
    with jax.enable_x64(True):
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
        if np.issubdtype(actual.dtype, np.floating):
            np.testing.assert_array_equal(np.signbit(actual), np.signbit(wanted))


def special(shape: tuple[int, int], dtype: Any) -> Array:
    """Few different numbers, rows of equal ones, both zeros, infinities and NaN."""
    whole = RANDOM.integers(-3, 4, shape).astype(dtype)
    whole[1] = 0
    if np.issubdtype(dtype, np.floating):
        whole[2], whole[3] = -np.inf, np.inf
        whole[4, ::2], whole[4, 1::2] = -0.0, 0.0
        whole[5, [7, 30]], whole[6, -1], whole[7, 0] = np.nan, np.nan, np.nan
        whole[8] = np.nan
    else:
        whole[2], whole[3] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return whole


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_argmax_and_argmin_of_rows(dtype: Any) -> None:
    def places(x: Any, y: Any, z: Any) -> Any:
        found = jnp.argmax(x, 1), jnp.argmin(x, 1), jax.lax.argmax(y, 2, jnp.int32)
        return *found, jnp.argmin(z, 0), jnp.argmax(z * 2)

    arguments = special((70, 131), dtype), special((40, 128), dtype).reshape(4, 10, 128), special((9, 9000), dtype)[6]
    check(places, *arguments, made=5)


@pytest.mark.parametrize("name", ["ge", "gt", "le", "lt"])
def test_values_and_places_by_one_comparison(name: str) -> None:
    """Left or right wins where numbers are equal: the first or the last place."""

    def places(x: Any) -> Any:
        def better(one: Any, other: Any) -> Any:
            chosen = getattr(jax.lax, name)(one[0], other[0])
            return jnp.where(chosen, one[0], other[0]), jnp.where(chosen, one[1], other[1])

        iota = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
        start = -jnp.inf if name.startswith("g") else jnp.inf
        return jax.lax.reduce((x, iota), (np.float32(start), np.int32(0)), better, (1,))

    x = special((64, 100), np.float32)
    check(places, x[~np.isnan(x).any(1)], made=1)


def test_a_place_that_stands_for_none_is_left() -> None:
    def farther(x: Any) -> Any:
        """The initial place wins over all numbers that are no greater than the initial value."""
        iota = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)

        def better(one: Any, other: Any) -> Any:
            chosen = one[0] >= other[0]
            return jnp.where(chosen, one[0], other[0]), jnp.where(chosen, one[1], other[1])

        return jax.lax.reduce((x, iota), (np.float32(1), np.int32(-1)), better, (1,))

    x = np.trunc(RANDOM.random((64, 100)) * 5 - 3).astype(np.float32)
    check(farther, x, made=0)
