"""legalize-single-terms: reductions of one term, beside XLA and StableHLO's interpreter.

XLA's client leaves the initial value out of them, so that the interpreter judges those that it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_SHAPES = [((5, 1), (1,)), ((1, 7), (0,)), ((3, 1, 4, 1), (1, 3)), ((1,), (0,)), ((0, 1), (1,)), ((6, 5), ())]


def _is_interpreted(function: Callable[..., Any], *arguments: Any) -> None:
    """A function gives what the interpreter gives, in each bit."""
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(function).lower(*arguments))
    expected = jax.tree.leaves(hloforge.reference("interpreter").prepare(program)(*arguments))
    for got, want in zip(jax.tree.leaves(compiled(program).load()(*arguments)), expected, strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize(("shape", "dims"), _SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.complex64, np.float16, ml_dtypes.bfloat16])
def test_sums_and_products(shape: tuple[int, ...], dims: tuple[int, ...], dtype: Any) -> None:
    check(lambda x: (x.sum(dims), x.prod(dims)), normal(*shape, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.complex64])
def test_initial_values(dtype: Any) -> None:
    three = np.array(3, dtype)
    _is_interpreted(lambda x: jax.lax.reduce(x, three, jax.lax.add, (0, 2)), normal(1, 9, 1, dtype=dtype))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 1.5])
def test_extremes_with_their_places(value: float) -> None:
    check(lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(1)), np.full((9, 1), value))


def test_zero_and_minus_zero_are_zero() -> None:
    _is_interpreted(lambda x: x.sum(1), np.full((9, 1), -0.0))


def test_computations_of_several_numbers() -> None:
    def function(x: Any, y: Any) -> Any:
        body = lambda a, b: (a[0] * b[0] - a[1], jnp.where(b[1] > 2, a[1], b[0] + 1))  # noqa: E731
        return jax.lax.reduce((x, y), (np.float32(2), np.float32(5)), body, (1,))

    numbers = np.arange(40, dtype=np.float32)[:, None]
    _is_interpreted(function, numbers, numbers[::-1] / 8)


def test_in_a_loop() -> None:
    points = normal(1857, 1)

    def step(_: int, centers: Any) -> Any:
        chosen = jax.nn.one_hot(jnp.square(points[:, None, :] - centers[None]).sum(-1).argmin(1), 3, dtype=np.float32)
        return (chosen.T @ points) / (chosen.sum(0)[:, None] + 1e-3)

    check(lambda centers: jax.lax.fori_loop(0, 4, step, centers), normal(3, 1))
