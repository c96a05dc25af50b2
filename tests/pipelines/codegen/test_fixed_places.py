"""Slices that begin where a loop's counter says are read like arrays that begin at a constant, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.runtime.compile.targets import parse_targets
from tests.pipelines.codegen.jax_programs import check, normal

_STEPS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "sums of rows": lambda c, x: (c + x.sum(-1), c),
    "sums of what costs much": lambda c, x: (c * 0.5 + jnp.exp(x).sum(-1), c),
    "extremes": lambda c, x: (c * 0.5 + x.max(-1) - x.min(-1), c),
    "places of extremes": lambda c, x: (c + x.argmax(-1), x.argmin(-1)),
    "each with each": lambda c, x: (c * 0.5 + jnp.abs(c[:, None] - x[:, 0]).min(-1), c),
    "a row of it": lambda c, x: (c * 0.5 + (x + x[x.shape[0] // 2]).max(-1), c),
    "transposed": lambda c, x: (c + x[:, 0], x.T * 2),
    "rows together": lambda c, x: (c + x[:, 0], jnp.tanh(x) * c[:, None] + x[0]),
    "an index from the data": lambda c, x: (c + x[:, jnp.argmax(c[:3]) % x.shape[1]], c),
}


@pytest.mark.wide(5)
@pytest.mark.parametrize("name", _STEPS)
@pytest.mark.parametrize(("rows", "columns"), [(3, 2), (70, 5), (40, 20), (33, 48), (130, 9), (9, 100)])
def test_scans(name: str, rows: int, columns: int) -> None:
    check(lambda c, x: jax.lax.scan(_STEPS[name], c, x), np.abs(normal(rows)), normal(7, rows, columns))


@pytest.mark.parametrize("columns", [8, 100])
def test_products_with_a_slice_added(columns: int) -> None:
    weights = normal(columns, columns) / columns
    check(lambda c, x: jax.lax.scan(lambda c, x: (c @ weights + x, c), c, x), normal(6, columns), normal(5, 6, columns))


def test_short_rows_of_a_slice_are_read_transposed() -> None:
    """As those of a whole array, so that a vector has an element of each row."""
    function = lambda c, x: jax.lax.scan(lambda c, x: (c + x.max(-1), None), c, x)  # noqa: E731
    program = hloforge.as_program(jax.jit(function).lower(normal(64), normal(5, 64, 12)))
    lower(program.module)
    texts = generate(program.module, parse_targets("cpu:znver4")[0].machine).kernels
    assert any("shufflevector" in text for text in texts)
