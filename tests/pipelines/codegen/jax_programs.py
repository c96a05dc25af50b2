"""Functions of JAX compiled by our own code generator, compared with XLA's client within some roundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import hloforge
from tests.pipelines.codegen.whole_programs import compiled, quick_xla

RANDOM = np.random.default_rng(0)
# Of the largest magnitude of a result.
_TOLERANCES = {"float16": 2e-2, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Random numbers, of both parts of complex ones."""
    numbers = RANDOM.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        numbers = numbers + 1j * RANDOM.standard_normal(shape)
    return np.asarray(numbers).astype(dtype)


def check(function: Callable[..., Any], *arguments: Any, tolerance: float | None = None) -> None:
    """Two calls of a function give what XLA's client gives; finite results within the tolerance of the largest."""
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments))
    expected = jax.tree.leaves(quick_xla().prepare(program)(*arguments))
    session = compiled(program).load()
    for _ in range(2):
        for got, want in zip(jax.tree.leaves(session(*arguments)), expected, strict=True):
            _compare(np.asarray(got), np.asarray(want), tolerance)


def _compare(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], tolerance: float | None) -> None:
    assert got.dtype == want.dtype
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    numbers = want.astype(wide)
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    allowed = tolerance or _TOLERANCES.get(want.dtype.name, 1e-11)
    np.testing.assert_allclose(got.astype(wide), numbers, rtol=0, atol=allowed * largest)
