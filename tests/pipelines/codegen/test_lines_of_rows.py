"""Sums of rows as lines, and sums of a few columns in registers, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check, normal

_TABLES: dict[str, Callable[..., Any]] = {
    "nearest": lambda x, y: (x[..., None] - y).__abs__().argmin(-1),
    "farthest": lambda x, y: jnp.square(x[..., None] - y).max(-1),
    "kernel": lambda x, y: jnp.exp(-jnp.square(x[..., None] - y)).sum(-1),
    "places": lambda x, y: (x[..., None] > y).sum(-1),
    "two sums": lambda x, y: ((x[..., None] * y).sum(-1), jnp.sin(x[..., None] + y).sum(-1)),
    "weighted": lambda x, y: jnp.cos(x[..., None] - y) @ y,
    "read across": lambda x, y: jnp.abs(jnp.swapaxes(x.reshape(-1, 70), 0, 1)).max(-1) + y[0],
}


@pytest.mark.wide(4)
@pytest.mark.parametrize("name", _TABLES)
@pytest.mark.parametrize(("shape", "columns"), [((910,), 5), ((770,), 9), ((70,), 64), ((3, 140), 20), ((4200,), 300)])
def test_each_number_with_each_of_a_table(name: str, shape: tuple[int, ...], columns: int) -> None:
    check(_TABLES[name], normal(*shape), normal(columns))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.complex64, np.float16])
def test_types_of_tables(dtype: Any) -> None:
    check(lambda x, y: (x[:, None] * y - y * y).sum(1), normal(333, dtype=dtype), normal(12, dtype=dtype))


_COLUMNS: dict[str, Callable[..., Any]] = {
    "counts": lambda x: jax.nn.one_hot(x.argmax(-1), x.shape[-1], dtype=x.dtype).sum(-2),
    "counts and marks": lambda x: (lambda h: (h, h.sum(-2)))(jax.nn.one_hot(x.argmax(-1), x.shape[-1])),
    "sums": lambda x: x.sum(-2),
    "of two dimensions": lambda x: (x[..., None, :] * jnp.arange(1.0, 4.0, dtype=x.dtype)[:, None]).sum((-3, -2)),
    "moments": lambda x: (x.mean(-2), x.var(-2), (x * jnp.arange(x.shape[-1])).sum(-2)),
    "extremes": lambda x: (x.max(-2), (x * jnp.arange(x.shape[-1])).min(-2), x.argmax(-2)),
    "with a map": lambda x: (lambda y: (y, y.sum(-2)))(jnp.exp(x - x.max(-1, keepdims=True)) + jnp.arange(x.shape[-1])),
}


@pytest.mark.wide(8)
@pytest.mark.parametrize("name", _COLUMNS)
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("shape", [(64,), (1001,), (5, 130), (30_001,)])
def test_few_columns(name: str, columns: int, shape: tuple[int, ...]) -> None:
    check(_COLUMNS[name], normal(*shape, columns))


@pytest.mark.parametrize("name", ["sums", "moments", "with a map"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_types_of_columns(name: str, dtype: Any) -> None:
    if np.dtype(dtype).kind == "c" and name == "with a map":
        pytest.skip("no largest number")
    check(_COLUMNS[name], normal(777, 3, dtype=dtype))


@pytest.mark.parametrize("columns", [2, 3])
def test_sums_of_few_columns_are_exact_enough(columns: int) -> None:
    """Sums in registers are cut like others: errors do not grow with their terms."""
    x = (1 + np.random.default_rng(0).standard_normal((60_000, columns))).astype(np.float32)
    exact = (np.square(x.astype(np.float64)) * np.arange(1, columns + 1)).sum(0)
    check(lambda x: (jnp.square(x) * jnp.arange(1, columns + 1)).sum(0) / exact, x, tolerance=2e-6)
