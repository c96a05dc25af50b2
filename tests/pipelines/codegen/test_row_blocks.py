"""Programs of short rows, whose loops run over several rows at once, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.row_blocks import row_blocks
from tests.pipelines.codegen.jax_programs import check, normal

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "sums of columns": lambda x: x.sum(-2),
    "extremes of columns": lambda x: (x.max(-2), x.min(-2), (x > 0).any(-2)),
    "sums of columns minus a row": lambda x: ((x - x[..., :1, :]) ** 2).sum(-2),
    "norms of columns": lambda x: (x - x.mean(-2, keepdims=True)) / jnp.sqrt(x.var(-2, keepdims=True) + 1e-5),
    "norms of rows": lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "softmax of rows": lambda x: jax.nn.softmax(x, -1),
    "softmax of columns": lambda x: jax.nn.softmax(x, -2),
    "logarithms of sums": lambda x: jax.scipy.special.logsumexp(x, -1),
    "rows and columns": lambda x: jnp.exp(x - x[..., :1]) * x[..., :1, :] + x[..., 1:2] * 3,
    "places of extremes": lambda x: (x.argmax(-1), x.argmin(-2)),
    "in a loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * y[..., :1, :] - jnp.tanh(y[..., :1]) * i, x),
}


@pytest.mark.wide(6)
@pytest.mark.parametrize("name", _PROGRAMS)
@pytest.mark.parametrize("shape", [(57, 9), (101, 5), (40, 31), (3, 70, 7), (2, 3, 33, 12)])
def test_programs_of_short_rows(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    check(_PROGRAMS[name], x)


@pytest.mark.parametrize("shape", [(16, 31), (20, 26), (24, 9), (2, 17, 24)])
def test_short_sums_of_columns(shape: tuple[int, ...]) -> None:
    """Sums that are written out, of as many rows as blocks are made of."""
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    check(lambda x: ((-x).sum(-2), (-x[..., None]).sum(-3), jnp.exp(x).max(-2)), x)


def test_only_rows_that_follow_each_other_are_taken_together() -> None:
    row, column = Symbol(999), Symbol(8)
    place = (Index(((row, 1),)), Index(((column, 1),)))

    def taken(*factors: dict[Symbol, int], columns: int = 9, adds_rows: bool = False) -> bool:
        found = Accesses(lambda array: True)
        return row_blocks(place, found, (0, 1000), (1, columns), factors, adds_rows=adds_rows) is not None

    assert taken({row: 9, column: 1})
    assert taken({row: 9, column: 1}, {})
    assert not taken({row: 10, column: 1})
    assert not taken({row: 9, column: 1}, {row: 1})
    assert not taken({column: 1})
    assert not taken({row: 3, column: 1}, columns=3)
    assert taken({row: 3, column: 1}, columns=3, adds_rows=True)


@pytest.mark.parametrize("rows", [3, 4, 41, 102])
def test_columns_of_several_rows_at_once(rows: int) -> None:
    x = np.random.default_rng(1).standard_normal((rows, 100)).astype(np.float32)
    check(lambda x: (x.sum(0), x.max(0), x.argmin(0), (x * x[0]).sum(0), jnp.exp(x).sum(0)), x)


@pytest.mark.parametrize(("rows", "columns"), [(2, 20), (4, 30), (5, 9), (16, 10), (8, 31)])
def test_few_rows_of_dear_terms(rows: int, columns: int) -> None:
    """In a loop, where their sums are read again."""

    def function(x: Any) -> Any:
        return jax.lax.fori_loop(0, 5, lambda _, x: x - 0.1 * jnp.cos(x).sum(-1, keepdims=True) + x[:1], x)

    check(function, normal(rows, columns))
