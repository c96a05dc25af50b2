"""Programs that strangers wrote, in which an array changed while somebody still needed it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hloforge


def interior(x: Any, i: Any) -> Any:
    """A pad between rows, then a unit dimension."""
    padded = lax.pad(x, _zero(x), [(0, 0, 1), (0, 0, 0)])
    return padded, padded[None].at[:, i].set(5)


def negative(x: Any, i: Any) -> Any:
    """A pad that takes a row away, then a unit dimension."""
    padded = lax.pad(x, _zero(x), [(0, -1, 0), (0, 0, 0)])
    return padded, padded[None].at[:, i].set(5)


def padded_and_sliced(x: Any, i: Any) -> Any:
    doubled = (x + x).ravel()
    same = lax.slice(lax.pad(doubled, _zero(x), [(0, 1, 0)]), (0,), doubled.shape)
    return doubled, same.at[i].set(5)


def sums_in_a_loop(x: Any, i: Any) -> Any:
    """Products before a loop and in it, which start from one array of ones."""
    row = x.ravel()
    first = jnp.cumprod(row)

    def turn(n: Any, carried: Any) -> Any:
        last, kept = carried
        return jnp.cumprod(last.at[i].set(n.astype(x.dtype))), kept + last

    return first, *lax.fori_loop(0, 3, turn, (first, jnp.zeros_like(row)))


def filled_joined_and_sliced(x: Any, i: Any) -> Any:
    """A part of a concatenation is the array that repeats a number, once slices are folded."""
    filled = jnp.broadcast_to(x[0, 0], x.shape)
    part = lax.slice(jnp.concatenate([filled, filled]), (0, 0), x.shape)
    return lax.pad(filled, _zero(x), [(0, 0, 1), (0, 0, 0)]), part.at[i].set(5)


def _zero(x: Any) -> Any:
    return np.zeros((), x.dtype)[()]


@pytest.mark.parametrize("element", ["int32", "int64", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("function", [interior, negative, padded_and_sliced, sums_in_a_loop, filled_joined_and_sliced])
def test_views_and_updates(function: Any, element: str) -> None:
    with jax.enable_x64(True):
        x = (np.arange(12).reshape(3, 4) % 3 + 1).astype(element)
        program = jax.jit(function)
        session = hloforge.compile(program.lower(x, 1), cache=False).load()
        expected = program(x, 1)
        for _ in range(2):
            for got, want in zip(
                session(x, np.asarray(1, session.signature.parameters[1].shape.element.dtype)), expected, strict=True
            ):
                np.testing.assert_array_equal(got, want)
