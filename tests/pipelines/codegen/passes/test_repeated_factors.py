"""Products of a factor that is repeated along a batch, which are products of more rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check, normal


def _lowered(function: Any, arguments: Sequence[Any]) -> str:
    program = hloforge.as_program(jax.jit(function).lower(*arguments)).clone()
    lower(program.module)
    return str(program.module)


def _factor(text: str) -> list[str]:
    """The types of the right factors of products."""
    return re.findall(r"dot_general.*: \(tensor<\S+>, tensor<(\S+)>\)", text)


_WAYS: dict[str, Callable[[Any, int], Any]] = {
    "repeat": lambda y, count: jnp.repeat(y, count, 1),
    "scaled": lambda y, count: jnp.repeat(y, count, 1) * 0.5 + 1,
    "scaled before": lambda y, count: jnp.repeat(jnp.tanh(y) * 0.5, count, 1),
    "sum of two": lambda y, count: jnp.repeat(y, count, 1) - jnp.repeat(y + 1, count, 1) * 3,
    "moved": lambda y, count: jnp.repeat(y.transpose(1, 0, 2, 3), count, 0).transpose(1, 0, 2, 3),
    "twice": lambda y, count: jnp.repeat(jnp.repeat(y, count, 1), 2, 1),
}


@settings(max_examples=20)
@given(
    st.sampled_from(sorted(_WAYS)),
    st.tuples(*[st.integers(1, 3)] * 3, st.sampled_from([1, 2, 5]), *[st.sampled_from([1, 7, 16, 33])] * 2),
    st.booleans(),
)
def test_products_are_those_of_repeated_factors(way: str, sizes: tuple[int, ...], is_transposed: bool) -> None:
    batch, groups, count, rows, depth, columns = sizes
    heads = groups * count * (2 if way == "twice" else 1)
    y = normal(batch, groups, depth, columns)

    def function(x: Any, y: Any) -> Any:
        repeated = _WAYS[way](y, count)
        if is_transposed:
            return jnp.einsum("bmhk,bhkn->bhmn", x, repeated)
        return jnp.einsum("bhmk,bhkn->bhmn", x, repeated)

    check(function, normal(batch, *((rows, heads) if is_transposed else (heads, rows)), depth), y)


@pytest.mark.parametrize("way", sorted(_WAYS))
@pytest.mark.parametrize("rows", [1, 4])
def test_the_factor_is_read_once(way: str, rows: int) -> None:
    heads = 24 if way == "twice" else 12
    arguments = np.zeros((2, heads, rows, 16), np.float32), np.zeros((2, 3, 16, 40), np.float32)

    def function(x: Any, y: Any) -> Any:
        return jnp.einsum("bhmk,bhkn->bhmn", x, _WAYS[way](y, 4))

    (found,) = _factor(_lowered(function, arguments))
    assert found in ("2x3x16x40xf32", "3x2x16x40xf32")


def test_what_is_not_repeated_as_neighbours_stays() -> None:
    def tiled(x: Any, y: Any) -> Any:
        return jnp.einsum("hmk,hkn->hmn", x, jnp.tile(y, (4, 1, 1)))

    arguments = normal(12, 2, 16), normal(3, 16, 40)
    assert _factor(_lowered(tiled, arguments)) == ["12x16x40xf32"]
    check(tiled, *arguments)


def test_attention_of_groups_of_heads() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        k, v = (jnp.repeat(x, 4, 1) for x in (k, v))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)

    arguments = normal(2, 12, 1, 32), normal(2, 3, 70, 32), normal(2, 3, 70, 32)
    check(attention, *arguments)
    assert _factor(_lowered(attention, arguments)) == ["2x3x70x32xf32"] * 2
