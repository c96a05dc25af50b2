"""Loops that do not depend on each other as workgroups of one kernel: XLA's numbers, by one thread and by several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import check
from tests.pipelines.codegen.whole_programs import compiled

_RANDOM = np.random.default_rng(5)


def _numbers(*shape: int) -> np.ndarray[Any, Any]:
    return (_RANDOM.standard_normal(shape) / 32).astype(np.float32)


def _along(h: Any, x: Any, w: Any, *, reverse: bool = False) -> Any:
    return jax.lax.scan(lambda h, x: (jnp.tanh(x + h @ w),) * 2, h, x, reverse=reverse)


def _rows(h: Any, x: Any, w: Any) -> Any:
    return _along(h, x, w)


def _directions(h: Any, x: Any, w: Any) -> Any:
    """The second one waits for a product, and both begin with an array that is computed."""
    first = jnp.sin(h)
    ended, forward = _along(first, x, w)
    return ended, forward, _along(first, jnp.einsum("tbi,ij->tbj", x, w), w * 2, reverse=True)


def _cells(h: Any, x: Any, w: Any) -> Any:
    """Several carries, a reduction and a concatenation along features, a state that changes places."""

    def step(states: Any, x: Any) -> Any:
        a, b = states
        gates = jnp.concatenate([a, b], -1) @ w + x
        gates = jax.nn.softmax(gates, -1)
        return (b + gates[:, : b.shape[1]], a), gates.max(-1)

    half = h.shape[1] // 2
    return jax.lax.scan(step, (h[:, :half], h[:, half:]), x)


def _in_turn(h: Any, x: Any, w: Any) -> Any:
    """The second loop reads what the first one makes."""
    mean = lambda rows: rows - rows.mean(0)  # noqa: E731
    ended, outputs = jax.lax.scan(lambda h, x: (mean(jnp.tanh(x + h @ w)),) * 2, h, x)
    return jax.lax.scan(lambda h, x: (mean(jnp.tanh(x + h @ w)),) * 2, ended, outputs)


_ARGUMENTS = _numbers(33, 160), _numbers(6, 33, 160), _numbers(160, 160)
_AT_ONCE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows": (_rows, _ARGUMENTS),
    "directions of few rows": (_directions, (_numbers(8, 160), _numbers(40, 8, 160), _numbers(160, 160))),
    "directions": (_directions, _ARGUMENTS),
    "several carries": (_cells, _ARGUMENTS),
}


def _workgroups(function: Callable[..., Any], arguments: Any) -> tuple[Any, list[int]]:
    executable = compiled(hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments)))
    native = executable.load(threads=3)._native
    assert native is not None
    program = native._program
    loops = [p for p in program.schedule.parts if "while" in program.library.names[p.kernel]]
    return executable, [part.workgroups for part in loops]


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _AT_ONCE)
def test_at_once(name: str) -> None:
    function, arguments = _AT_ONCE[name]
    check(function, *arguments)
    executable, workgroups = _workgroups(function, arguments)
    assert set(workgroups) == {2}
    alone, several = executable.load(threads=1), executable.load(threads=3)
    expected = jax.tree.leaves(alone(*arguments))
    for _ in range(5):
        for one, other in zip(jax.tree.leaves(several(*arguments)), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_one_after_the_other() -> None:
    check(_in_turn, *_ARGUMENTS)
    assert set(_workgroups(_in_turn, _ARGUMENTS)[1]) == {1}
