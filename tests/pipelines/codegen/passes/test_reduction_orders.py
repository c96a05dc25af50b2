"""Reductions of arrays whose dimensions were exchanged, split and joined, beside numpy's numbers in float64."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.passes import reduction_orders
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_Step = tuple[str, tuple[int, ...]]


def _steps(data: st.DataObject, shape: tuple[int, ...]) -> list[_Step]:
    """Some exchanges, and dimensions that are split and joined in between."""
    found: list[_Step] = []
    for _ in range(data.draw(st.integers(1, 3), "exchanges")):
        order = tuple(data.draw(st.permutations(range(len(shape))), "order"))
        found.append(("transpose", order))
        shape = tuple(shape[d] for d in order)
        kind = data.draw(st.sampled_from(["split", "join", "none"]), "kind")
        if kind == "join" and len(shape) > 1:
            place = data.draw(st.integers(0, len(shape) - 2), "joined")
            shape = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
        elif kind == "split":
            place = data.draw(st.integers(0, len(shape) - 1), "place")
            size = shape[place]
            divisor = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]), "divisor")
            shape = (*shape[:place], divisor, size // divisor, *shape[place + 1 :])
        found.append(("reshape", shape))
    return found


def _rearranged(x: Any, steps: list[_Step]) -> Any:
    for name, numbers in steps:
        x = getattr(x, name)(numbers)
    return x


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_random_rearrangements(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 4, 6, 9]), min_size=2, max_size=4), "shape"))
    steps, kind = _steps(data, shape), data.draw(st.sampled_from(["sum", "max", "min"]), "of")
    x = normal(*shape)
    value = _rearranged(np.float64(x), steps)
    dims = tuple(sorted(data.draw(st.sets(st.integers(0, value.ndim - 1), min_size=1), "dims")))
    between = data.draw(st.integers(0, 2), "between")
    scale = normal(*(size if data.draw(st.booleans(), "varies") else 1 for size in value.shape))

    def function(x: Any, scale: Any) -> Any:
        value = _rearranged(x, steps)
        for _ in range(between):
            value = jnp.tanh(value * scale) + value - 0.5
        return getattr(jnp, kind)(value, axis=dims), value.mean(axis=dims)

    for _ in range(between):
        value = np.tanh(value * scale) + value - 0.5
    program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(x, scale))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduction_orders, "_LARGE", 1)
        found = compiled(program).load()(x, scale)
    for got, want in zip(found, (getattr(np, kind)(value, axis=dims), value.mean(axis=dims)), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=2e-5 * np.abs(want).max(initial=1))


def _reduced(function: Any, *arguments: Any) -> list[tuple[list[int], list[int]]]:
    """Of a lowered program's reductions: the operand's sizes and the dimensions that go."""
    module = hloforge.as_program(jax.jit(function).lower(*arguments)).clone().module
    lower(module)
    found = operations(module, {"stablehlo.reduce"})
    return [(list(Value(op.operands[0]).dims), integers(op, "dimensions")) for op in found]


def test_group_norms_read_features_as_they_lie() -> None:
    def norm(x: Any) -> Any:
        y = jnp.moveaxis(x, -1, 1)
        groups = y.reshape(y.shape[0], 8, -1)
        mean = groups.mean(2, keepdims=True)
        variance = ((groups - mean) ** 2).mean(2, keepdims=True)
        return jnp.moveaxis(((groups - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(y.shape), 1, -1)

    x = normal(2, 12, 12, 32)
    assert _reduced(norm, x) == [([2, 12, 12, 8, 4], [1, 2]), ([2, 8, 4], [2])] * 2
    check(norm, x)
    check(jax.grad(lambda x: (norm(x) ** 3).sum()), x)


def test_arrays_in_two_orders_stay_as_they_are() -> None:
    def both(x: Any, y: Any) -> Any:
        return (x.transpose(2, 0, 1) * y).sum((1, 2))

    x, y = normal(32, 32, 16), normal(16, 32, 32)
    assert _reduced(both, x, y) == [([16, 32, 32], [1, 2])]
    check(both, x, y)
