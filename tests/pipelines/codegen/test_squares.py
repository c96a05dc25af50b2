"""Arrays that are read across the order in which results are written, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.squares import Sizes, lanes_of_square
from tests.pipelines.codegen.jax_programs import check
from tests.pipelines.codegen.products.memory import Guarded

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "alone": lambda x: jnp.swapaxes(x, -1, -2),
    "with what lies along": lambda x: jnp.swapaxes(x, -1, -2) + jnp.swapaxes(x, -1, -2)[..., ::-1, :],
    "both": lambda x: x + jnp.swapaxes(x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]), -1, -2),
}


@pytest.mark.wide(4)
@pytest.mark.parametrize("shape", [(8, 8), (9, 33), (2, 31, 40), (65, 16), (3, 100, 13), (47, 64)])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str, shape: tuple[int, ...]) -> None:
    values = 10 * np.random.default_rng(1).standard_normal(shape)
    others = (np.float64, np.int8, np.complex64, np.complex128, jnp.bfloat16)
    for dtype in (np.float32, others[sum(shape) % len(others)]):
        check(_PROGRAMS[name], values.astype(dtype))


@pytest.mark.parametrize("shape", [(700, 300), (300, 520)])
def test_of_several_workgroups(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    check(lambda x: jnp.tanh(x.T) * 3, x)


@pytest.mark.parametrize("shape", [(131, 150), (160, 133), (150, 160)])
def test_squares_at_the_ends_have_loops_of_their_own(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    check(lambda x: (x.T * 3, x.T + x.reshape(x.shape[::-1])), x)


@pytest.mark.parametrize("shape", [(2, 64, 10, 6), (3, 40, 7, 5), (1, 33, 100, 2), (9, 16, 3, 3)])
def test_short_rows_that_follow_each_other_are_squares(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-99, 99, shape).astype(np.int8)
    check(lambda x, y: (x.transpose(0, 3, 2, 1), y.transpose(3, 0, 2, 1) + 1), x, x.astype(np.int16))


@pytest.mark.parametrize("at_end", [False, True])
def test_padding_is_not_read(at_end: bool) -> None:
    x = np.ones((64, 32), np.float32)
    memory = Guarded(x.nbytes, at_end=at_end)
    padded = hloforge.compile(jax.jit(lambda x: jnp.pad(x, ((32, 32), (0, 0))).T).lower(x))
    np.testing.assert_array_equal(padded(memory.array(x)), np.pad(x, ((32, 32), (0, 0))).T)


def test_ends_that_are_shorter_than_vectors_need_masks() -> None:
    assert lanes_of_square(Sizes(64, 64), "f32", 32) == 8
    assert lanes_of_square(Sizes(64 + 5, 64), "f32", 32) == 0
    assert lanes_of_square(Sizes(64 + 5, 64), "f32", 64) == 16
    assert lanes_of_square(Sizes(64, 64), "f64", 16) == 2
    assert lanes_of_square(Sizes(64 + 9, 64), "complex<f64>", 64) == 0


_ROWS: dict[str, Callable[..., Any]] = {
    "extremes": lambda x: (x.max(-1), jnp.where(x > 0, x, 9).min(-1)),
    "places of extremes": lambda x: (x.argmax(-1), x.argmin(-1)),
    "sums": lambda x: (x.sum(-1), (x * x[..., :1]).sum(-1), (x > 0).all(-1)),
    "dear terms": lambda x: jnp.exp(x - x[..., :1] + x[0]).sum(-1),
}


@pytest.mark.wide(4)
@pytest.mark.parametrize("shape", [(32, 9), (57, 16), (100, 31), (3, 33, 12), (200, 32), (40, 41)])
@pytest.mark.parametrize("name", _ROWS)
def test_short_rows(name: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).standard_normal(shape)
    if "places" in name:
        # XLA's own extremes of rows of 32 forget NaN.
        values[(0,) * (len(shape) - 1)] = np.nan
    check(_ROWS[name], values.astype((np.float32, np.float64)[sum(shape) % 2]))


_MASKED: dict[str, Callable[..., Any]] = {
    "rows": lambda x, m: jnp.where(m, x, -jnp.inf).max(-1),
    "columns": lambda x, m: jnp.where(m, x, jnp.inf).min(0),
    "by place": lambda x, m: jnp.where(jnp.arange(x.shape[-1]) < 7, x, jnp.inf).min(-1),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("shape", [(5, 9), (33, 100), (40, 300)])
@pytest.mark.parametrize("name", _MASKED)
def test_extremes_under_masks(name: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        check(_MASKED[name], random.standard_normal(shape).astype(dtype), random.random(shape) < 0.3)


def test_short_rows_of_several_workgroups() -> None:
    x = np.random.default_rng(1).standard_normal((20_001, 12)).astype(np.float32)
    check(lambda x: (x.argmax(-1), jnp.exp(x).sum(-1)), x)
