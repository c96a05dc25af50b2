"""Loops whose state is changed in place, and what still needs the elements from before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check

_X = np.arange(30, dtype=np.float32).reshape(6, 5) / 8 - 1
_loop: Callable[..., Any] = jax.lax.fori_loop


def _inner_loop(i: Any, x: Any) -> Any:
    old = x[0]
    return _loop(0, 5, lambda j, y: y.at[i, j].add(y[j, i % 5]), x).at[1].add(old)


def _two_of_one(i: Any, state: Any) -> Any:
    x, z = state
    y, w = _loop(0, 5, lambda j, s: (s[0].at[i, j].add(s[1][j, 0]), s[1] * 0.5 + s[0][0, 0]), (x, x))
    return y + w, z + x


def _late(i: Any, x: Any) -> Any:
    y = x.at[i].set(x[i + 1] - x[0])
    return y.at[0].set(x[i] * 2 + y[1])


def _one_after_another(x: Any) -> Any:
    first = _loop(0, 4, lambda i, y: y.at[i].add(1), x)
    return _loop(0, 3, lambda i, y: y.at[i].mul(first[i, 0]), first), first


_PROGRAMS: dict[str, Callable[..., Any]] = {
    "exchanged": lambda x: _loop(0, 5, lambda i, s: (s[1], s[0] * 2), (x, x + 1)),
    "old element": lambda x: _loop(0, 6, lambda i, s: (s[0].at[i].set(s[0][i] * 2), s[1] + s[0][i]), (x, x[0])),
    "each other": lambda x: _loop(0, 6, lambda i, s: (s[0].at[i].set(s[1][i]), s[1].at[i].set(s[0][i])), (x, -x)),
    "a loop in a loop": lambda x: _loop(0, 5, _inner_loop, x),
    "reads the outer state": lambda x: _loop(
        0, 5, lambda i, y: _loop(0, 5, lambda j, z: z.at[i, j].add(y[j, i % 5]), y), x
    ),
    "two states of one": lambda x: _loop(0, 5, _two_of_one, (x, x)),
    "late reads": lambda x: _loop(0, 5, _late, x),
    "one after another": _one_after_another,
    "a branch": lambda x: _loop(
        0, 6, lambda i, y: jax.lax.cond(i % 2 == 0, lambda z: z.at[i].add(z[0]), lambda z: z * 1.5, y), x
    ),
    "shortest paths": lambda x: _loop(0, 5, lambda k, d: jnp.minimum(d, d[:, k][:, None] + d[k][None]), abs(x[:5])),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_loop_is_xlas(name: str) -> None:
    check(_PROGRAMS[name], _X)
