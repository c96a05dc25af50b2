"""Loops whose carries change places: what is made of an array is written to another one, turn by turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.turns import Wheel
from tests.pipelines.codegen.jax_programs import check

_X = np.arange(20 * 16, dtype=np.float32).reshape(20, 16) % 37 / 8 - 2
_loop: Callable[..., Any] = jax.lax.fori_loop


def _stencil(x: Any) -> Any:
    return 0.5 * x + 0.25 * (jnp.roll(x, 1, 0) - jnp.roll(x, -1, 1))


def _wave(state: Any) -> Any:
    now, before = state
    return 1.5 * now - 0.5 * before + 0.1 * jnp.roll(now, 1, 0), now


def _three(state: Any) -> Any:
    x, y, z = state
    return _stencil(z) + 1, x, y


def _two_new(state: Any) -> Any:
    x, y, z, w = state
    return _stencil(x), _stencil(y) * x, x, z - w


def _in_rows(x: Any) -> Any:
    return jax.lax.scan(lambda row, now: (now + jnp.minimum(row, jnp.roll(row, 1)), row[3]), x[0], x[1:])


def _while(limit: Any, turn: Callable[[Any], Any], start: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] + 2, turn(s[1])), (0, start))[1]


def _nested(i: Any, x: Any) -> Any:
    inner = _loop(0, 3, lambda j, s: _wave(s), (x, x * 0.5))
    return jnp.where(i % 2 == 0, _stencil(inner[0]), inner[1])


def _branching(i: Any, x: Any) -> Any:
    return jax.lax.cond(i % 3 == 0, _stencil, lambda y: _loop(0, 2, lambda j, z: _stencil(z), y) - 1, x)


_PROGRAMS: dict[str, Callable[..., Any]] = {
    "both are read afterwards": lambda x: (_loop(0, 3, lambda i, y: _stencil(y), x + 1), x + 1),
    "of one array": lambda x: _loop(0, 3, lambda i, s: (_stencil(s[0]), _stencil(s[1]) + s[0]), (x * 2, x * 2)),
    "given back twice": lambda x: _loop(0, 3, lambda i, s: 2 * (_stencil(s[0] - s[1]),), (x, x + 1)),
    "exchanged": lambda x: _loop(0, 5, lambda i, s: (s[1], _stencil(s[0])), (x, x + 1)),
    "exchanged alone": lambda x: _loop(0, 5, lambda i, s: (s[1], s[0], s[2] + s[0]), (x, x + 1, x)),
    "two new ones": lambda x: _loop(0, 5, lambda i, s: _two_new(s), (x, x + 1, x * 2, x - 3)),
    "rows": _in_rows,
    "in a loop": lambda x: _loop(0, 3, _nested, x),
    "in a branch": lambda x: _loop(0, 5, _branching, x),
    "gathered": lambda x: _loop(0, 5, lambda i, y: y[jnp.arange(20) * 7 % 20] + 0.5 * y, x),
    "a product": lambda x: _loop(0, 3, lambda i, y: y @ (x.T @ x / 300), x),
    "sorted": lambda x: _loop(0, 3, lambda i, y: jnp.sort(y + jnp.roll(y, 1, 1), axis=0), x),
    "one after another": lambda x: _loop(0, 3, lambda i, y: _stencil(y), _loop(0, 4, lambda i, y: _stencil(y), x)),
    "another type": lambda x: _loop(
        0, 3, lambda i, s: (jnp.roll(s[0], 1, 1) + s[1].astype(jnp.float32), s[1][::-1]), (x, x.astype(jnp.int32))
    ),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_loop_is_xlas(name: str) -> None:
    check(_PROGRAMS[name], _X)


@pytest.mark.wide(2)
@pytest.mark.parametrize("turns", range(2, 8))
def test_any_number_of_turns_is_xlas(turns: int) -> None:
    check(lambda x: _loop(0, turns, lambda i, y: _stencil(y), x), _X)
    check(lambda x: _loop(0, turns, lambda i, s: _wave(s), (x + 1, x)), _X)
    check(lambda x: _loop(0, turns, lambda i, s: _three(s), (x, x + 1, x * 2)), _X)


@pytest.mark.wide(2)
@pytest.mark.parametrize("limit", range(8))
def test_turns_that_nobody_knows_are_xlas(limit: int) -> None:
    number = np.int32(limit)
    check(lambda x, n: _while(n, _stencil, x), _X, number)
    check(lambda x, n: _while(n, _wave, (x + 1, x)), _X, number)
    check(lambda x, n: _while(n, _three, (x, x + 1, x * 2)), _X, number)


def _drawn(seed: int) -> Callable[[Any, Any], Any]:
    """A loop over four arrays, each of which becomes another, or something new."""
    draw = random.Random(seed)
    kinds = [(draw.choice("pnnsuo"), draw.randrange(4), draw.randrange(4)) for _ in range(4)]
    turns = draw.choice([2, 3, 4, 5, None])

    def new(state: Sequence[Any], kind: str, one: int, other: int) -> Any:
        if kind == "p":
            return state[one]
        if kind == "n":
            return _stencil(state[one]) + 0.5 * state[other]
        if kind == "s":
            return jnp.where(state[one] > 0, state[other], 0.25)
        if kind == "u":
            return state[one].at[3].add(state[other][4])
        return state[one][::-1] * 0.5

    def turn(state: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(new(state, *kind) for kind in kinds)

    def program(x: Any, n: Any) -> Any:
        start = (x, x + 1, x[::-1] * 2, x * 0.5) if draw.random() < 0.5 else (x + 1,) * 4
        found = _while(n, turn, start) if turns is None else _loop(0, turns, lambda i, s: turn(s), start)
        return found[: draw.randint(1, 4)]

    return program


@pytest.mark.wide(8)
@pytest.mark.parametrize("seed", range(40))
def test_loops_over_four_arrays_are_xlas(seed: int) -> None:
    check(_drawn(seed), _X, np.int32(2 + seed % 5))


@pytest.mark.parametrize("turns", range(10))
def test_where_arrays_are_after_some_turns(turns: int) -> None:
    wheel = Wheel(carries=(0, 1), following=(2, 0, 3, 1), written=(True, False), over=(None, None))
    held = list("abcd")
    for _ in range(turns):
        held = [held[place] for place in wheel.following]
    assert held == [list("abcd")[place] for place in wheel.after(turns)]


@pytest.mark.parametrize("step", [90, 100, 101, 107])
def test_counters_that_begin_again_at_the_end_of_their_type(step: int) -> None:
    """XLA takes the number of turns for that without the end; numpy counts."""
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32)

    def turn(x: Any, roll: Any) -> Any:
        return roll(x, 1) * np.float32(0.9) + x * np.float32(0.05)

    def program(x: Any) -> Any:
        state = np.int8(0), x
        return jax.lax.while_loop(lambda s: s[0] < 120, lambda s: (s[0] + np.int8(step), turn(s[1], jnp.roll)), state)[
            1
        ]

    right, count = x, 0
    while count < 120:
        right, count = turn(right, np.roll), (count + step + 128) % 256 - 128
    found = hloforge.compile(jax.jit(program).lower(x).as_text()).load()(x)
    np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-6)
