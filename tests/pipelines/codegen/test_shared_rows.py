"""Sorts, windows and gathers that several threads work on: the same bits as in one thread, and XLA's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hloforge
from tests.pipelines.codegen.jax_programs import check
from tests.pipelines.codegen.whole_programs import compiled

_RANDOM = np.random.default_rng(5)


def _numbers(*shape: int) -> np.ndarray[Any, Any]:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))


def _of_large_windows(x: Any) -> Any:
    """One pass for each dimension, with memory between them."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 9, 11), (1, 1, 1), "SAME")


_CASES: dict[str, tuple[Callable[..., Any], np.ndarray[Any, Any]]] = {
    "first of many": (lambda x: lax.top_k(x, 5), _numbers(67, 3000)),
    "first of some": (lambda x: lax.top_k(x, 3), _numbers(3001, 60)),
    "ranks": (lambda x: jnp.argsort(x, 1), _numbers(1003, 100)),
    "digits": (lambda x: jnp.sort(x, 1), _numbers(13, 9000)),
    "columns": (lambda x: jnp.sort(x, 0), _numbers(2000, 33)),
    "any comparator": (lambda x: lax.sort((jnp.abs(x), x), num_keys=2), _numbers(40, 2000)),
    "windows, features last": (_pooled, _numbers(1, 101, 103, 64)),
    "windows, features first": (lambda x: _pooled(x.transpose(0, 3, 1, 2)), _numbers(2, 90, 90, 48)),
    "large windows": (_of_large_windows, _numbers(10, 150, 160)),
    "running sums": (lambda x: jnp.cumsum(x, 1), _numbers(400, 2000)),
    # Each element is another line of memory.
    "numbers from anywhere": (lambda x: x.reshape(-1)[jnp.argsort(x[0])], _numbers(20, 50_000)),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _CASES)
def test_shared(name: str) -> None:
    function, x = _CASES[name]
    check(function, x)
    executable = compiled(hloforge.as_program(jax.jit(function).lower(x)))
    alone, several = executable.load(threads=1), executable.load(threads=3)
    assert several._native is not None
    assert any(part.workgroups > 1 for part in several._native._program.schedule.parts)
    expected = jax.tree.leaves(alone(x))
    for _ in range(5):
        for one, other in zip(jax.tree.leaves(several(x)), expected, strict=True):
            np.testing.assert_array_equal(one, other)


_SMALL: dict[str, tuple[Callable[..., Any], np.ndarray[Any, Any]]] = {
    "sort": (lambda x: jnp.sort(x, 1), _numbers(8, 100)),
    "windows": (lambda x: _pooled(x[None]), _numbers(20, 20, 32)),
    "numbers of a short table": (lambda x: jnp.arange(256.0)[x.astype(np.int32) & 255], _numbers(50_000)),
}


@pytest.mark.parametrize("name", _SMALL)
def test_one_thread_is_faster(name: str) -> None:
    function, x = _SMALL[name]
    native = compiled(hloforge.as_program(jax.jit(function).lower(x))).load(threads=3)._native
    assert native is not None
    assert all(part.workgroups == 1 for part in native._program.schedule.parts)
