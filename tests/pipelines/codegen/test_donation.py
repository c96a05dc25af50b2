"""Donated arguments: results are written where they lie, if nobody reads the old numbers later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge
from hloforge.pipelines.codegen import generate
from hloforge.runtime.artifact.executable import Executable
from tests.pipelines.codegen.whole_programs import compiled, quick_xla

Function = Callable[..., Any]
SIZE = 6

# Functions of two square arrays and a row's number.
STEPS: dict[str, Function] = {
    "row": lambda x, y, n: x.at[n].set(y[0]),
    "own_row": lambda x, y, n: x.at[n].set(x[n + 1] * 3),
    "columns": lambda x, y, n: lax.dynamic_update_slice(x, y[:, :1], (0, n)),
    "scatter": lambda x, y, n: x.at[y[:, 0] % SIZE].add(y),
    "scatter_of_itself": lambda x, y, n: x.at[x[:, 0] % SIZE].add(x[::-1]),
    "sum": lambda x, y, n: x + y * 2,
    "same": lambda x, y, n: x * 5,
    "other": lambda x, y, n: y - 3,
    "transposed": lambda x, y, n: x.T + y,
    "reversed": lambda x, y, n: x[::-1] - y,
    "rolled": lambda x, y, n: jnp.roll(x, 1, 0),
    "by_sum": lambda x, y, n: x - x.sum(0),
    "sorted": lambda x, y, n: jnp.sort(x, 1),
    "product": lambda x, y, n: x @ y,
    "loop": lambda x, y, n: lax.fori_loop(0, 3, lambda i, c: c.at[i].set(y[i] + c[i + 1]), x),
    "shifting_loop": lambda x, y, n: lax.fori_loop(0, 2, lambda i, c: jnp.roll(c, 1, 1) + y, x),
    "loop_of_both": lambda x, y, n: lax.fori_loop(0, 3, lambda i, c: (c[1].at[i].add(c[0][i]), c[0]), (x, y))[0],
    "branch": lambda x, y, n: lax.cond(n > 1, lambda: x.at[n].set(7), lambda: y),
}


@pytest.fixture(autouse=True)
def small_arrays_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "_LARGE", 1)


def donating(function: Function, *arguments: Any) -> Executable:
    program = hloforge.as_program(jax.jit(function, donate_argnums=(0, 1), keep_unused=True).lower(*arguments))
    assert program.signature.aliases
    return compiled(program)


def check(function: Function, *arguments: Any) -> None:
    """Calls with arrays of the host, by both runtimes, and with arrays of the device give XLA's results."""
    plain = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments))
    expected = [np.asarray(one) for one in jax.tree.leaves(quick_xla().prepare(plain)(*arguments))]
    executable = donating(function, *arguments)
    for session in (executable.load(), executable.load(deadline=100)):
        for _ in range(2):
            given = [argument.copy() for argument in arguments]
            found = jax.tree.leaves(session(*given))
            same(found, expected)
            same(given, arguments)
            for array in found:
                array[...] = 0
            same(given, arguments)
        on_device = [session.put(argument, number) for number, argument in enumerate(arguments)]
        found = jax.tree.leaves(session.call_device(*on_device))
        same([np.asarray(one) for one in found], expected)
        same([np.asarray(on_device[-1])], arguments[-1:])


def same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def numbers(seed: int) -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-9, 9, (SIZE, SIZE)).astype(np.int32) for _ in range(2))
    return x, y, np.array(rng.integers(0, SIZE - 1), np.int32)


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("is_crossed", [False, True], ids=["straight", "crossed"])
def test_one_step(name: str, is_crossed: bool) -> None:
    def function(x: Any, y: Any, n: Any) -> Any:
        made = STEPS[name](x, y, n)
        return (y + 1, made) if is_crossed else (made, x - y)

    check(function, *numbers(1))


@given(
    steps=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), max_size=6),
    returned=st.lists(st.integers(0, 9), min_size=2, max_size=4),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_random_programs(steps: list[tuple[str, int, int]], returned: list[int], seed: int) -> None:
    def function(x: Any, y: Any, n: Any) -> Any:
        known = [x, y]
        for name, one, other in steps:
            known.append(STEPS[name](known[one % len(known)], known[other % len(known)], n))
        return [known[-1 - number % len(known)] for number in returned]

    check(function, *numbers(seed))


DONATION = ", input_output_alias={ {}: (0, {}, must-alias) }"


def test_a_row_of_a_donated_array_is_all_that_is_written() -> None:
    text = f"""HloModule m{DONATION}
ENTRY e {{
  x = f32[1000,100] parameter(0)
  u = f32[1,100] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT r = f32[1000,100] dynamic-update-slice(x, u, i, zero)
}}"""
    session = hloforge.compile(text).load()
    assert session.manifest.is_generated
    x = session.put(np.zeros((1000, 100), np.float32), 0)
    place = x.host.__array_interface__["data"][0]
    made = session.call_device(x, np.ones((1, 100), np.float32), np.int32(5))
    assert made.host.__array_interface__["data"][0] == place
    assert np.asarray(made).sum() == 100


def test_arrays_that_others_see_are_copied() -> None:
    session = donating(lambda x, y, n: (x + 1, y.at[n].set(x[0])), *numbers(2)).load()
    x, y, n = numbers(2)
    taken = session.put(x, 0)
    seen = np.asarray(taken)
    taken.is_shared = True
    same(session(taken, session.put(y, 1), n)[:1], [x + 1])
    same([seen], [x])


def test_an_array_is_not_given_away_twice() -> None:
    session = donating(lambda x, y, n: (x + 1, y * 2), *numbers(2)).load()
    x, _, n = numbers(2)
    taken = session.put(x, 0)
    with pytest.raises(hloforge.ArgumentError, match="a second time"):
        session(taken, taken, n)
    same([np.asarray(taken)], [x])
