"""Quotients by shared divisors, beside numpy's division: the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

Array = np.ndarray[Any, Any]
_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5.0, -7.0, 1.0, 3.0, 1e-20, -1e20]


def _run(function: Callable[..., Any], *arguments: Array) -> Array:
    with jax.enable_x64(True):
        text = jax.jit(function).lower(*arguments).as_text()
    return np.asarray(compiled(hloforge.read(text.encode())).load()(*arguments))


def _numbers(dtype: Any, most: int, *shape: int) -> Array:
    random = np.random.default_rng(most)
    return (random.standard_normal(shape) * 2.0 ** random.integers(-most, most, shape)).astype(dtype)


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1), (np.float32, 60), (np.float64, 400)])
def test_rows_and_what_is_computed_of_them(dtype: Any, most: int) -> None:
    x, y = _numbers(dtype, most, 301, 67), _numbers(dtype, most, 301, 1)
    np.testing.assert_array_equal(_run(lambda x, y: x / y, x, y), x / y)
    y = abs(y)
    np.testing.assert_array_equal(_run(lambda x, y: x / (y + y), x, y), x / (y + y))


@pytest.mark.parametrize("divisor", [3.0, 255.0, 0.1, -1e30, 3e38, 2e-38, 4.0])
def test_constants(divisor: float) -> None:
    x, y = _numbers(np.float32, 20, 5000), np.float32(divisor)
    with np.errstate(all="ignore"):
        expected = x / y
    # Results of the largest divisor are subnormal, which is 0 in some processes.
    is_large = abs(expected) > np.finfo(np.float32).tiny
    np.testing.assert_array_equal(_run(lambda x: x / y, x)[is_large], expected[is_large])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype: Any) -> None:
    limits = np.finfo(dtype)
    ends = [limits.max, -limits.max, limits.max / 3, limits.tiny, 3 * limits.tiny, -limits.tiny * 1e10]
    y = np.array([*_SPECIAL, *ends], dtype)[:, None]
    x = np.tile(y.T, (y.size, 2))
    with np.errstate(all="ignore"):
        expected = x / y
    found = _run(lambda x, y: x / y, x, y)
    # Beside the smallest numbers, whose last bit may differ, and which are 0 in some processes.
    is_known = (expected == 0) | ~(abs(expected) < limits.tiny / limits.eps)
    np.testing.assert_array_equal(found[is_known], expected[is_known])
    np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))
    np.testing.assert_allclose(found[~is_known], expected[~is_known], 0, limits.tiny)


def test_one_division_for_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel divides a number, and no vector."""
    from hloforge.runtime.compile.direct import machine_code

    texts: list[str] = []
    real = machine_code.Compiler.compile
    monkeypatch.setattr(machine_code.Compiler, "compile", lambda self, text: (texts.append(text), real(self, text))[1])
    x, y = _numbers(np.float32, 1, 40, 64), _numbers(np.float32, 1, 40, 1)
    _run(lambda x, y: x / y, x, y)
    assert any("@llvm.fma" in text for text in texts)
