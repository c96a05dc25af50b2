"""Operations with algorithms of their own, whose results have no element: there is nothing to compute, and no loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check, normal


def _convolution(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, (1,), [(0, 0)], dimension_numbers=("NCH", "OIH", "NCH"))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (_convolution, [(1, 2, 3), (3, 2, 5)]),  # a window that is larger than the image
        (jnp.matmul, [(0, 3), (3, 4)]),
        (jnp.matmul, [(5, 3), (3, 0)]),
        (lambda x: jnp.sort(x, axis=1), [(3, 0)]),
        (lambda x: jax.lax.sort((x, x + 1, x), num_keys=2)[1], [(0,)]),
        (lambda x: jax.lax.sort((x, x + 1))[1].sum(), [(0,)]),
        (jnp.linalg.cholesky, [(0, 4, 4)]),
        (lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), [(4, 4), (4, 0)]),
        (lambda x: jnp.fft.rfft(x), [(0, 8)]),
        (lambda x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (2, 1), (1, 1), "VALID"), [(1, 3)]),
    ],
)
def test_results_without_elements(function: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    check(lambda *arrays: function(*arrays), *(normal(*shape) for shape in shapes))


@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 4), (3, 0, 5), (2, 0, 0)])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_windows_of_padding_alone(shape: tuple[int, ...], size: int) -> None:
    windows, strides = (size,) * len(shape), (1,) * len(shape)
    padding, dilation = [(size, 1)] * len(shape), (2,) * len(shape)

    def largest_and_sums(x: Any) -> Any:
        first = jax.lax.reduce_window(x, -np.inf, jax.lax.max, windows, strides, padding, dilation)
        both = jax.lax.reduce_window((x, x + 1), (np.float32(1), np.float32(2)), _sums, windows, strides, padding)
        return first, both

    check(largest_and_sums, normal(*shape))


def _sums(one: Any, other: Any) -> Any:
    return one[0] + other[0], one[1] + other[1]
