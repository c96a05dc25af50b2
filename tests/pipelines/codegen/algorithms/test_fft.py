"""Fourier transforms of complex and of real numbers against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.bluestein import Bluestein, complex_fft
from hloforge.pipelines.codegen.algorithms.fft import FFT
from hloforge.pipelines.codegen.algorithms.real_fft import RealFFT
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import address_room, compiled

_REALS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
_ELEMENTS = st.sampled_from(sorted(_REALS))
_LENGTHS = st.one_of(
    st.integers(1, 40), st.sampled_from([57, 64, 97, 100, 124, 128, 210, 289, 343, 398, 1000, 1003, 1024, 2051, 2321])
)
_BYTES = st.sampled_from([16, 32, 64])


@given(
    _ELEMENTS, st.integers(0, 20), _LENGTHS, st.sampled_from([0, 1, 1, 2, 5, 19]), st.booleans(), st.booleans(), _BYTES
)
@settings(max_examples=60, deadline=None)
def test_complex_transforms(
    element: str, outer: int, n: int, inner: int, inverse: bool, in_parts: bool, vector_bytes: int
) -> None:
    random = np.random.default_rng(n)
    array = random.standard_normal((outer, n, inner)) + 1j * random.standard_normal((outer, n, inner))
    dtype = np.result_type(_REALS[element], np.complex64)
    plan = complex_fft(outer, n, inner, f"complex<{element}>", inverse=inverse, vector_bytes=vector_bytes)
    name = f"complex<{element}>"
    actual = _run(plan, (name, name), array.astype(dtype), array.shape, dtype, in_parts)
    expected = (np.fft.ifft if inverse else np.fft.fft)(array, axis=1)
    np.testing.assert_allclose(actual, expected, **_close(element, expected))


@given(_ELEMENTS, st.integers(0, 20), _LENGTHS, st.booleans(), st.booleans(), _BYTES)
@settings(max_examples=50, deadline=None)
def test_real_transforms(element: str, outer: int, n: int, inverse: bool, in_parts: bool, vector_bytes: int) -> None:
    random = np.random.default_rng(n)
    real, name = _REALS[element], f"complex<{element}>"
    dtype, count = np.result_type(real, np.complex64), n // 2 + 1
    plan = RealFFT(outer, n, element, inverse, vector_bytes)
    if inverse:
        array = random.standard_normal((outer, count)) + 1j * random.standard_normal((outer, count))
        actual = _run(plan, (name, element), array.astype(dtype), (outer, n), real, in_parts)
        expected = np.fft.irfft(array, n, axis=1)
    else:
        array = random.standard_normal((outer, n))
        actual = _run(plan, (element, name), array.astype(real), (outer, count), dtype, in_parts)
        expected = np.fft.rfft(array, axis=1)
    np.testing.assert_allclose(actual, expected, **_close(element, expected))


@pytest.mark.parametrize("n", [211, 2 * 223])
def test_a_length_with_a_large_prime_factor_is_a_convolution(n: int) -> None:
    assert isinstance(complex_fft(1, n, 1, "complex<f32>"), Bluestein)
    assert isinstance(complex_fft(1, 199, 1, "complex<f32>"), FFT)


def _close(element: str, expected: Any) -> dict[str, float]:
    size = abs(expected).max() if expected.size else 1.0
    return {"rtol": 0.0, "atol": (2e-6 if element == "f32" else 4e-15) * size}


def _run(
    plan: FFT | Bluestein | RealFFT, elements: tuple[str, str], array: Any, shape: Any, dtype: Any, in_parts: bool
) -> Any:
    def write(function: Function, pointers: list[Value]) -> None:
        source, target = (Elements(pointer, element) for pointer, element in zip(pointers, elements, strict=False))
        half = plan.rows // 2
        for rows in [(0, half), (half, plan.rows)] if in_parts else [None]:
            plan.write(function, source, target, pointers[2], pointers[3], rows)

    result = np.full(int(np.prod(shape)) + 1, 7, dtype)
    room, table = address_room(plan.scratch + 64), address_room(len(plan.table))
    table[:] = np.frombuffer(plan.table, np.uint8)
    compiled(write, 4)(array, result, room, table)
    assert result[-1] == 7
    assert (room[plan.scratch :] == 0xA5).all()
    return result[:-1].reshape(shape)
