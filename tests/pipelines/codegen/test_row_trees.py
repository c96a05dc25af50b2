"""Reductions of many short rows by trees of shuffles, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen.row_trees import _stages
from tests.pipelines.codegen.jax_programs import check, normal

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "of each kind": lambda x: (x.sum(-1), x.max(-1), x.min(-1)),
    "of terms": lambda x: ((x * x + x[..., :1]).sum(-1), (x[..., ::-1] * 2).max(-1)),
    "from numbers": lambda x: (x.max(-1, initial=0), jnp.where(x > 0, x, 1).sum(-1)),
}


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((70, 24), np.float32), ((3, 65, 12), np.float32), ((64, 60), np.int32), ((67, 17), np.float64)],
)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    check(_PROGRAMS[name], (10 * normal(*shape)).astype(dtype))


def test_bfloat16_and_many_rows() -> None:
    check(lambda x: (x.max(-1), x.sum(-1)), normal(70, 40).astype(jnp.bfloat16))
    check(lambda x: (x.max(-1), x.sum(-1)), normal(30_011, 19))


@pytest.mark.parametrize("columns", [9, 13, 16, 31])
def test_flags_and_places(columns: int) -> None:
    def programs(x: Any, y: Any) -> Any:
        counted = jnp.where(x > y[:, None], jnp.arange(columns), 99)
        return (x > 1).any(1), (x > y[:, None]).all(1), (x > 0).all(1), counted.min(1), (x.astype(int) & 7).sum(1)

    check(programs, (3 * normal(301, columns)).astype(np.int32), np.arange(-150, 151, dtype=np.int32) // 50)
    check(lambda x: (x.any(1), x.all(1)), normal(301, columns) > -1.5)


@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf, -0.0])
def test_extremes_of_special_values(special: float) -> None:
    x = np.zeros((80, 20), np.float32)
    x[np.arange(80), np.arange(80) % 20] = special
    check(lambda x: (x.max(-1), x.min(-1), 1 / x.max(-1), 1 / x.min(-1)), x)


@pytest.mark.parametrize(("lanes", "part"), [(4, 4), (8, 4), (16, 4), (2, 2), (4, 2), (8, 2)])
def test_each_lane_is_the_sum_of_a_row(lanes: int, part: int) -> None:
    vectors = list(np.random.default_rng(0).integers(0, 99, (lanes, lanes)))
    sums = [vector.sum() for vector in vectors]
    for low, high in _stages(lanes, part):
        pairs = [np.concatenate(pair) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
        vectors = [pair[low] + pair[high] for pair in pairs]
    assert vectors[0].tolist() == sums
