"""legalize-few-bins: scatters into a few elements as reductions, beside XLA's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check

_RANDOM = np.random.default_rng(7)


def _indices(shape: int | tuple[int, ...], most: int, kind: Any = np.int32) -> Any:
    """Some of them out of bounds."""
    return _RANDOM.integers(0 if kind is np.uint8 else -2, most + 2, shape).astype(kind)


def _floats(count: int) -> Any:
    return _RANDOM.standard_normal(count).astype(np.float32)


def _counts(index: Any, update: Any) -> Any:
    return jnp.arange(4).at[index].add(update, mode="drop")


def _pairs(index: Any) -> Any:
    return jnp.zeros((2, 3), jnp.int16).at[index[0], index[1]].add(1, mode="drop")


def _products(index: Any, update: Any) -> Any:
    return jnp.ones(5, jnp.uint8).at[index].mul(update, mode="drop")


def _least(index: Any, update: Any) -> Any:
    return jnp.zeros(6).at[index].min(update, mode="drop")


def _batch(index: Any) -> Any:
    return jax.vmap(lambda own: jnp.full(3, -1, jnp.int32).at[own].max(own, mode="drop"))(index)


def _seen(index: Any) -> Any:
    return jnp.zeros(2, bool).at[index].max(True, mode="drop")


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        (_counts, (_indices(203, 4), _indices(203, 99))),
        (_pairs, (_indices((2, 500), 3),)),
        (_products, (_indices(99, 5, np.uint8), _indices(99, 5, np.uint8))),
        (_least, (_indices(101, 6), _floats(101))),
        (_batch, (_indices((7, 70), 3),)),
        (_seen, (_indices(64, 2),)),
    ],
)
def test_few_bins(change: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    check(change, *arguments)
    assert "stablehlo.scatter" not in _lowered(change, *arguments)


def test_sums_of_floats_keep_their_order() -> None:
    index, update = _indices(203, 4), _floats(203)
    assert "stablehlo.scatter" in _lowered(lambda i, u: jnp.zeros(4).at[i].add(u), index, update)


def _lowered(change: Callable[..., Any], *arguments: Any) -> str:
    program = hloforge.as_program(jax.jit(change).lower(*arguments))
    lower(program.module)
    return str(program.module)
