"""Rolls and paddings of short rows, of which several are one loop, beside XLA's client."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen import loops
from tests.pipelines.codegen.jax_programs import check, normal

_BYTES = np.arange(700 * 36, dtype=np.uint32).reshape(700, 6, 6).astype(np.uint8)


def _edges(x: Any) -> Any:
    padded = jnp.pad(x, ((1, 1), (1, 1)), mode="edge")
    return padded[2:, 1:-1] + padded[1:-1, :-2] - 2 * x


_PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "bytes": (lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 1) * 3 + jnp.roll(x, 1, 2), _BYTES),
    "in a loop": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.roll(y, 2, 0) + jnp.roll(y, 1, 1) * 3 - y, x),
        _BYTES,
    ),
    "shared": (lambda x: jnp.roll(x, -1, 2) * jnp.roll(x, (1, 2), (0, 1)), np.tile(_BYTES, (90, 1, 1))),
    "last row": (lambda x: jnp.roll(x, -1, 1) + x, normal(401, 7)),
    "complex": (lambda x: jnp.roll(x, 2, 1) * x, normal(301, 9, dtype=np.complex64)),
    "padded": (lambda x: jnp.pad(x, ((0, 0), (2, 2)))[:, 4:] + jnp.pad(x, ((1, 0), (0, 0)))[:-1], normal(403, 5)),
    "padded by minus infinity": (
        lambda x: jnp.pad(x, ((0, 0), (1, 1)), constant_values=-jnp.inf)[:, 2:] > x,
        normal(403, 5),
    ),
    "with gaps": (
        lambda x: jax.lax.pad(x, jnp.float32(7), ((0, 0, 0), (1, 0, 1)))[:, :4] - x,
        normal(403, 4),
    ),
    "edges": (_edges, normal(501, 6)),
    "joined": (lambda x: jnp.concatenate([x[:, 3:], x[:, :3] * 2], 1) + 1, normal(401, 8)),
    "turned": (lambda x: jnp.roll(x[:, ::-1], 1, 1) + x, normal(401, 8)),
    "halves": (lambda x: jnp.roll(x, 1, 1) + x, normal(401, 6).astype(np.float16)),
    "of rows": (lambda x: jnp.roll(x, 1, 1) + x[:, :1], normal(401, 6)),
    "batch": (lambda x: jnp.roll(x, 1, 3) + jnp.roll(x, 1, 1) - jnp.roll(x, 1, 0), normal(3, 200, 2, 5)),
    "booleans": (lambda x: jnp.roll(x, 1, 1) ^ jnp.pad(x, ((0, 0), (1, 0)))[:, :-1], normal(401, 6) > 0),
    "divided": (lambda x: jnp.roll(x, 1, 2) // jnp.maximum(jnp.pad(x, ((0, 0), (0, 0), (1, 0)))[..., :-1], 3), _BYTES),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_short_rows_are_xlas(name: str) -> None:
    function, argument = _PROGRAMS[name]
    check(function, argument)


def test_several_rows_are_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    plan = loops.selected_rows

    def noted(*given: Any) -> Any:
        found.append(plan(*given))
        return found[-1]

    monkeypatch.setattr(loops, "selected_rows", noted)
    check(lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -1, 1) * 5 + jnp.roll(x, 3, 2), _BYTES)
    taken = [one for one in found if one is not None]
    assert [(one.inner, one.size, one.first, one.last) for one in taken] == [(2, 36, 1, 699)]


def _drawn(seed: int) -> tuple[Callable[..., Any], np.ndarray[Any, Any]]:
    draw = random.Random(seed)
    shape = [*([draw.randint(1, 3)] if draw.random() < 0.3 else []), draw.randint(100, 500)]
    shape += [draw.randint(2, 9) for _ in range(draw.randint(1, 2))]
    dtype = draw.choice(["uint8", "int32", "float32", "float64"])
    moves = [(draw.randrange(len(shape)), draw.randint(-3, 3), draw.choice("rrpe")) for _ in range(draw.randint(2, 5))]

    def moved(x: Any, dim: int, by: int, how: str) -> Any:
        if how == "r":
            return jnp.roll(x, by, dim)
        widths = [(0, 0)] * x.ndim
        widths[dim] = (max(by, 0), max(-by, 0))
        padded = jnp.pad(x, widths) if how == "p" else jnp.pad(x, widths, mode="edge")
        return jax.lax.slice_in_dim(padded, max(-by, 0), max(-by, 0) + x.shape[dim], axis=dim)

    def program(x: Any) -> Any:
        total = x
        for number, move in enumerate(moves):
            term = moved(x, *move)
            total = total * term if number == 2 else total + term * (number + 1)
        return total

    return program, normal(*shape).astype(dtype) if dtype.startswith("f") else (normal(*shape) * 50).astype(dtype)


@pytest.mark.wide(3)
@pytest.mark.parametrize("seed", range(30))
def test_random_moves_are_xlas(seed: int) -> None:
    program, argument = _drawn(seed)
    check(program, argument)
