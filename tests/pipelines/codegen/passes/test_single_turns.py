"""legalize-single-turns: loops that run once or never, beside XLA; each has another loop that stays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check, normal


def _step(index: Any, x: Any) -> Any:
    return jnp.roll(x, 1, 0) * 0.5 + x[::-1] * index


@pytest.mark.parametrize("turns", [0, 1, 2])
@pytest.mark.parametrize("first", [0, -3, 5])
def test_counted_loops(turns: int, first: int) -> None:
    check(lambda x: jax.lax.fori_loop(first, first + turns, _step, x) + 1, normal(9, 4))


@pytest.mark.parametrize("outer", [0, 1, 3])
@pytest.mark.parametrize("inner", [0, 1, 3])
def test_loops_in_loops(outer: int, inner: int) -> None:
    def turn(index: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, inner, lambda j, y: _step(j + index, y), x) - index

    check(lambda x: jax.lax.fori_loop(0, outer, turn, x), normal(9, 4))


@pytest.mark.parametrize("length", [0, 1, 2])
def test_scans_and_their_gradients(length: int) -> None:
    def function(x: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda carry, y: (jnp.sin(carry * y), carry + y), x, xs)

    check(lambda x, xs: function(x, xs)[1], normal(5), normal(length, 5))
    check(jax.grad(lambda x, xs: function(x, xs)[0].sum(), argnums=(0, 1)), normal(5), normal(length, 5))


def test_carries_that_change_places() -> None:
    def swap(carry: Any) -> Any:
        index, x, y = carry
        return index * 2, y + 1, x

    check(lambda x, y: jax.lax.while_loop(lambda c: c[0] < 2, swap, (1, x, y)), normal(7), normal(7))


def test_conditions_on_floats_and_on_arguments() -> None:
    def function(x: Any) -> Any:
        once = jax.lax.while_loop(lambda c: c[0] > 0.5, lambda c: (c[0] * 0.25, c[1] * 3), (1.0, x))
        asked = jax.lax.while_loop(lambda c: c[0] > 0.5, lambda c: (c[0] * 0.25, c[1] * 3), (x[0] * 0 + 1.0, x))
        return once[1], asked[1]

    check(function, normal(7))


def test_what_a_body_makes_decides() -> None:
    def turn(carry: Any) -> Any:
        return carry[0] + carry[1].astype(int)[0], carry[1]

    check(lambda x: jax.lax.while_loop(lambda c: c[0] < 4, turn, (0, x)), np.ones(3))
