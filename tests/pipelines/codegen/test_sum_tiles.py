"""Sums over pairs of rows by tiles in registers, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen.sum_tiles import SumTileLoops
from tests.pipelines.codegen.jax_programs import check, normal

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "squares": lambda a, b: jnp.square(a[..., :, None, :] - b[..., None, :, :]).sum(-1),
    "distances": lambda a, b: jnp.sqrt(jnp.square(a[..., :, None, :] - b[..., None, :, :]).sum(-1) + 1),
    "absolute": lambda a, b: jnp.abs(a[..., :, None, :] - b[..., None, :, :]).sum(-1),
    "greatest": lambda a, b: jnp.maximum(a[..., :, None, :], b[..., None, :, :]).sum(-1) + 3,
    "weighted": lambda a, b: (jnp.square(a[..., :, None, :] - b[..., None, :, :]) * a[..., :1, None, :]).sum(-1),
    "reversed": lambda a, b: jnp.square(a[..., ::-1, None, :] - b[..., None, 1:, :]).sum(-1),
    "chosen": lambda a, b: jnp.where(a[..., :, None, :] > 0, b[..., None, :, :], 1).sum(-1),
    "in a loop": lambda a, b: jax.lax.scan(
        lambda s, n: (s + jnp.abs(a[..., :, None, :] * n - b[..., None, :, :]).sum(-1), None),
        jnp.zeros((*a.shape[:-1], b.shape[-2]), a.dtype),
        jnp.arange(3, dtype=a.dtype),
    )[0],
}


@pytest.mark.wide(6)
@pytest.mark.parametrize(
    ("rows", "columns", "dtype"),
    [
        ((9, 101), (6, 101), np.float32),
        ((2, 7, 64), (2, 13, 64), np.float32),
        ((5, 60), (70, 60), np.float64),
        ((17, 90), (8, 90), jnp.bfloat16),
        ((3, 2100), (5, 2100), np.float32),
        ((2050, 49), (4, 49), np.float32),
    ],
)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str, rows: tuple[int, ...], columns: tuple[int, ...], dtype: Any) -> None:
    check(_PROGRAMS[name], normal(*rows).astype(dtype), normal(*columns).astype(dtype))


def test_special_values_stay_in_their_pairs() -> None:
    a, b = np.zeros((2, 9, 50), np.float32)
    a[3, 49], b[5, 0], b[8, 20] = np.nan, np.inf, -0.0
    check(_PROGRAMS["squares"], a, b)


def test_a_load_serves_several_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of terms that nothing reads of both rows; a third array of all pairs is read as often as there are terms."""
    written: list[int] = []
    before = SumTileLoops._by_sum_tiles

    def counted(self: SumTileLoops, *groups: Any) -> None:
        written.append(groups[-1].size)
        before(self, *groups)

    monkeypatch.setattr(SumTileLoops, "_by_sum_tiles", counted)
    a, b = normal(8, 100), normal(8, 100)
    check(_PROGRAMS["squares"], a, b)
    assert written == [100]
    check(lambda a, b, c: (jnp.square(a[:, None] - b[None]) * c).sum(-1), a, b, normal(8, 8, 100))
    assert written == [100]
