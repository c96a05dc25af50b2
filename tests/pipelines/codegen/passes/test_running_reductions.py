"""decompose-running-reductions, and 16-bit windows: rounded after each step, in the order of XLA's CPU client."""

from __future__ import annotations

import math
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge

_TYPES = (ml_dtypes.bfloat16, np.float16)


def _agrees(array: np.ndarray[Any, Any], combine: Any, *window: Any, **options: Any) -> None:
    """Bit for bit."""
    start = np.array(0 if combine is lax.add else 1, array.dtype)
    lowered = jax.jit(lambda x: lax.reduce_window(x, start, combine, *window, **options)).lower(array)
    expected = np.asarray(lowered.compile()(array))
    actual = np.asarray(hloforge.compile(lowered.as_text()).load()(array))
    np.testing.assert_array_equal(actual.view(np.uint16), expected.view(np.uint16))


def _is_rounded(array: np.ndarray[Any, Any], combine: Any, sizes: Any, *window: Any, **options: Any) -> None:
    """As near to float64 as that many operations in any order are."""

    def of(start: Any) -> Any:
        return lambda x: lax.reduce_window(x, start, combine, sizes, *window, **options)

    start = 0 if combine is lax.add else 1
    actual = np.asarray(
        hloforge.compile(jax.jit(of(np.array(start, array.dtype))).lower(array).as_text()).load()(array)
    )
    with jax.enable_x64(True):
        wide = array.astype(np.float64)
        right, size = (np.asarray(of(np.float64(start))(one)) for one in (wide, np.abs(wide)))
    rounding = float(ml_dtypes.finfo(array.dtype).eps) / 2 * math.prod(sizes)
    assert (np.abs(actual.astype(np.float64) - right) <= rounding * size).all()


def _random(shape: tuple[int, ...], element: Any, combine: Any = lax.add) -> np.ndarray[Any, Any]:
    array = np.random.default_rng(len(shape) + shape[0]).standard_normal(shape)
    return (array if combine is lax.add else 1 + array / 10).astype(element)


@pytest.mark.wide(6)
@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "along"), [((8, 9), 1), ((4, 16), 1), ((17, 3), 0), ((2, 40, 3), 1), ((300,), 0), ((5000,), 0)]
)
def test_running_sums(shape: tuple[int, ...], along: int, reverse: bool, element: Any) -> None:
    n = shape[along]
    sizes, padding = [1] * len(shape), [(0, 0)] * len(shape)
    sizes[along], padding[along] = n, (0, n - 1) if reverse else (n - 1, 0)
    _agrees(_random(shape, element), lax.add, sizes, [1] * len(shape), padding)


@pytest.mark.parametrize("n", [9, 33, 400])
def test_running_sums_without_the_element_itself(n: int) -> None:
    for padding in [(n, 0), (0, n)]:
        _agrees(_random((n, 2), ml_dtypes.bfloat16), lax.add, (n, 1), (1, 1), [padding, (0, 0)])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 1)])
def test_sums_of_windows(strides: tuple[int, int], padding: str) -> None:
    array = _random((2, 14, 14, 3), ml_dtypes.bfloat16)
    _agrees(array, lax.add, (1, 3, 3, 1), (1, *strides, 1), padding)
    _agrees(array.transpose(0, 3, 1, 2), lax.add, (1, 1, 3, 3), (1, 1, *strides), padding)


def test_long_windows() -> None:
    _agrees(_random((3, 200), ml_dtypes.bfloat16), lax.add, (1, 100), (1, 3), "SAME")
    _agrees(_random((40, 50), ml_dtypes.bfloat16), lax.mul, (21, 22), (1, 1), [(3, 0), (0, 20)])


@st.composite
def _windows(draw: Any) -> tuple[Any, ...]:
    dims = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 20))
        size, stride, low, high = (draw(st.integers(*limits)) for limits in [(1, n), (1, 3), (0, 2), (0, 2)])
        dims.append((n, size, stride, (low, high), draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([1, 1, 2]))))
    return tuple(zip(*dims, strict=True))


@given(_windows(), st.sampled_from(_TYPES), st.sampled_from([lax.add, lax.mul]))
@settings(max_examples=8, deadline=None)
def test_any_windows(dims: tuple[Any, ...], element: Any, combine: Any) -> None:
    shape, *window, base, dilation = dims
    # Not bit for bit: which numbers LLVM adds in pairs for XLA depends on sizes (f16 of 2x2, bf16 of 2x3 with gaps).
    _is_rounded(_random(shape, element, combine), combine, *window, base_dilation=base, window_dilation=dilation)
