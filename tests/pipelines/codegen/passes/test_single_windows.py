"""legalize-single-windows: parts of arrays that are changed, in and out of loops, beside XLA's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal


def _first(x: Any) -> Any:
    return x.at[:, :-1].add(0.5 * (x[:, 1:] - x[:, :-1]))


def _middle(x: Any) -> Any:
    """Reads other places of what it changes."""
    return x.at[1:-1, 1:-1].set(x[2:, 1:-1] + x[:-2, 1:-1] - x[1:-1, 1:-1])


def _rows(x: Any) -> Any:
    return x.at[0].multiply(2).at[-1].set(x[1]).at[:, 2].min(0.25)


def _transposed(x: Any) -> Any:
    """Reads places that it has written before."""
    return x.at[1:5, 1:5].set(0.5 * x[1:5, 1:5].T)


@pytest.mark.parametrize(
    ("change", "turns"), [(_first, 0), (_first, 3), (_middle, 3), (_rows, 0), (_rows, 3), (_transposed, 3)]
)
def test_parts(change: Callable[[Any], Any], turns: int) -> None:
    looped = lambda x: jax.lax.fori_loop(0, turns, lambda _, carry: change(carry), x)  # noqa: E731
    check(looped if turns else change, normal(7, 19))


def _moved(x: Any, start: Any, read: Any) -> Any:
    """A part whose place the loop says, computed of the part that begins at another one."""
    own = jax.lax.dynamic_slice(x, (start, 0), (3, 19))
    other = jax.lax.dynamic_slice(x, (read, 0), (3, 19))
    return jax.lax.dynamic_update_slice(x, 0.5 * own + other, (start, 0))


@pytest.mark.parametrize("distance", [0, 1])
def test_places_in_loops(distance: int) -> None:
    check(
        lambda x: jax.lax.fori_loop(0, 5, lambda i, carry: _moved(carry, i, i + distance), x),
        normal(9, 19),
    )


@pytest.mark.parametrize("start", [-3, 6])
def test_windows_outside_change_nothing(start: int) -> None:
    def function(x: Any) -> Any:
        numbers = jax.lax.ScatterDimensionNumbers((0,), (), (0,))
        return jax.lax.scatter_add(x, jnp.array([start]), jnp.ones(3, x.dtype), numbers, mode="fill")

    check(function, normal(8))


def test_fields_in_loops_have_no_other_memory() -> None:
    """A field is changed where it is, also where what is added is computed of the field itself."""

    def step(_: Any, carry: Any) -> Any:
        e, h = carry
        h = h.at[:, :-1].set(h[:, :-1] - 0.5 * (e[:, 1:] - e[:, :-1]))
        return e.at[:, 1:].add(0.5 * (h[:, 1:] - h[:, :-1])), h

    function = jax.jit(lambda e, h: jax.lax.fori_loop(0, 4, step, (e, h)))
    arguments = normal(24, 33), normal(24, 33)
    check(function, *arguments)
    program = hloforge.as_program(function.lower(*arguments)).clone()
    lower(program.module)
    assert generate(program.module, Machine()).transient < arguments[0].nbytes
