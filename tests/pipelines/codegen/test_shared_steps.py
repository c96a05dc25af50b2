"""Steps of loops and branches that several threads work on: the same bits as in one thread, and XLA's numbers."""

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
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _elementwise(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, x: jnp.tanh(jnp.sin(x) + 0.5 * x), x)


def _stencil(x: Any) -> Any:
    def step(_: Any, x: Any) -> Any:
        return x.at[1:-1, 1:-1].set(jnp.exp(-(x[2:, 1:-1] ** 2)) + jnp.cos(x[1:-1, :-2]))

    return jax.lax.fori_loop(0, 3, step, x)


def _rows(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, x: jax.nn.softmax(jnp.sin(x) * jnp.exp(jnp.cos(x)), -1) + 0.1 * x, x)


def _recurrent(x: Any, w: Any) -> Any:
    """A product whose factor is packed before the loop."""
    return jax.lax.scan(lambda h, x: (jnp.tanh(0.1 * x + h @ w * 0.05),) * 2, x[0], x)


def _product(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, 2, lambda _, w: (w @ w.T) * 0.01 + jax.nn.relu(w), w)


def _nested(x: Any) -> Any:
    def step(_: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, 2, lambda _, y: jnp.sin(y) + jnp.cos(x), x)

    return jax.lax.fori_loop(0, 2, step, x)


def _branch(x: Any) -> Any:
    """A small result, which would be on the stack, of a branch that does much."""

    def dear(x: Any) -> Any:
        for _ in range(6):
            x = jnp.tanh(jnp.sin(x) * jnp.cos(x) + jnp.exp(-x * x))
        return x.sum(1)

    step = lambda i, sums: sums + jax.lax.cond(sums[0] > 1e6, lambda x: x[:, 0], dear, x + i)  # noqa: E731
    return jax.lax.fori_loop(0, 3, step, jnp.zeros(x.shape[0], x.dtype))


_SQUARE = (_numbers(260, 300),)
_CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...]]] = {
    "elementwise": (_elementwise, _SQUARE),
    "a stencil, which changes places": (_stencil, _SQUARE),
    "rows": (_rows, _SQUARE),
    "a packed factor": (_recurrent, (_numbers(3, 64, 800), _numbers(800, 800))),
    "a product": (_product, (_numbers(2, 2), _numbers(300, 300))),
    "a loop in a loop": (_nested, _SQUARE),
    "a small result of a branch": (_branch, (_numbers(100, 3000),)),
}


def _program(function: Callable[..., Any], *arguments: Any) -> hloforge.Program:
    return hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments))


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _CASES)
def test_shared(name: str) -> None:
    function, arguments = _CASES[name]
    check(function, *arguments)
    executable = compiled(_program(function, *arguments))
    alone, several = executable.load(threads=1), executable.load(threads=3)
    assert several._native is not None
    assert any(part.shares > 1 for part in several._native._program.schedule.parts)
    expected = jax.tree.leaves(alone(*arguments))
    for _ in range(5):
        for one, other in zip(jax.tree.leaves(several(*arguments)), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    # By IREE's runtime, whose pool kernels know nothing of.
    by_iree = several.call_views([several.put(array, n).buffer_view for n, array in enumerate(arguments)])
    for view, codec, other in zip(by_iree, several.results, expected, strict=True):
        np.testing.assert_array_equal(codec.decode(view), other)


def _by_planes_and_rows(x: Any) -> Any:
    """Each step goes through what the one before made in another order."""
    return jax.lax.fori_loop(0, 3, lambda _, x: x - x.mean(0) + jnp.roll(x, 1, 1), x)


@pytest.mark.parametrize(("function", "shape"), [(_elementwise, (16, 16)), (_by_planes_and_rows, (9, 130, 70))])
def test_one_thread_is_faster(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """The way of arrays from one core's cache to another's would take longer."""
    native = compiled(_program(function, _numbers(*shape))).load(threads=3)._native
    assert native is not None
    assert all(part.shares == 1 for part in native._program.schedule.parts)
