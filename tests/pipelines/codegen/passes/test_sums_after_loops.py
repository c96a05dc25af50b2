"""Gradients through loops over a sequence, whose products of all turns are one, with XLA's numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

from hloforge.pipelines.codegen.passes import sums_after_loops
from tests.pipelines.codegen.jax_programs import check, normal


def _gru(weights: Any, state: Any, x: Any) -> Any:
    into, kept, bias, new, own = weights
    reset, update = jnp.split(jax.nn.sigmoid(x @ into + state @ kept + bias), 2, -1)
    return (1 - update) * jnp.tanh(x @ new + (reset * state) @ own) + update * state


def _weights(width: int, inputs: int, dtype: str) -> list[Any]:
    sizes = (inputs, 2 * width), (width, 2 * width), (2 * width,), (inputs, width), (width, width)
    return [(0.3 * normal(*size)).astype(dtype) for size in sizes]


@pytest.mark.parametrize(("rows", "dtype", "backward"), [(1, "f4", False), (3, "f4", True), (5, "f8", False)])
def test_gradients_of_a_recurrent_layer(rows: int, dtype: str, backward: bool) -> None:
    weights, xs = _weights(24, 20, dtype), normal(9, rows, 20).astype(dtype)

    def loss(first: Any, xs: Any, *weights: Any) -> Any:
        last, states = lax.scan(lambda s, x: (_gru(weights, s, x),) * 2, first, xs, reverse=backward)
        return (states**2).sum() + last.sum()

    check(jax.grad(loss, range(7)), normal(rows, 24).astype(dtype), xs, *weights)


@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_random_sums_of_products(data: st.DataObject) -> None:
    """Batches, several products of the same factors, sums that start at a number, and sums that are read."""
    turns, batch, terms = (data.draw(st.integers(2, most)) for most in (6, 3, 3))
    rows, columns = (data.draw(st.integers(3, 20)) for _ in range(2))
    is_read = data.draw(st.booleans())

    def function(start: Any, bias: Any, xs: Any, ys: Any) -> Any:
        def turn(i: Any, state: Any) -> Any:
            total, biases = state
            x, y = xs[i], jnp.sin(ys[i])
            scale = total[0, 0, 0] * 0.1 if is_read else 1.0
            product = jnp.einsum("btr,btc->bcr", x, y * scale)
            return total + product.transpose(0, 2, 1), biases + y.sum((0, 1))

        return lax.fori_loop(0, turns, turn, (start, bias))

    check(
        function,
        normal(batch, rows, columns),
        normal(columns),
        normal(turns, batch, terms, rows),
        normal(turns, batch, terms, columns),
    )


def test_a_loop_keeps_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_after_loops, "_MOST_BYTES", 9 * (2 * 40 + 2 * 32) * 4)

    def loss(one: Any, other: Any, xs: Any) -> Any:
        def turn(state: Any, x: Any) -> Any:
            return jnp.tanh(x @ one + state @ other), None

        return (lax.scan(turn, jnp.zeros((2, 32), np.float32), xs)[0] ** 2).sum()

    check(jax.grad(loss, (0, 1)), normal(40, 32), 0.2 * normal(32, 32), normal(9, 2, 40))
