"""Extremes of rows by vectors: NaN, signs of zeros, rests of vectors, and what is computed on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.runtime.compile.targets import parse_targets
from hloforge.runtime.options import CompileOptions
from tests.pipelines.codegen.jax_programs import check, normal

# No subnormal numbers, which count as zeros in loops over floats, as in XLA, and not in those over integers.
_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5, -1.5)


def _rows(rng: np.random.Generator, rows: int, columns: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Rows of one number with few others, so that extremes are zeros of either sign, infinite or NaN."""
    found = np.empty((rows, columns), dtype)
    for row in found:
        row[:] = rng.choice(_SPECIAL)
        row[rng.integers(columns, size=rng.integers(3))] = rng.choice(_SPECIAL)
    return found


def _extreme(row: np.ndarray[Any, Any], *, greatest: bool) -> Any:
    """IEEE 754-2019's maximum or minimum of all numbers."""
    if np.isnan(row).any():
        return np.nan
    extreme = row.max() if greatest else row.min()
    if extreme != 0:
        return extreme
    signs = np.signbit(row[row == 0])
    return np.copysign(0, -1.0 if (signs.all() if greatest else signs.any()) else 1.0)


@pytest.mark.wide(4)
@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("columns", [8, 16, 17, 31, 64, 129, 700])
def test_nan_and_signs_of_zeros(columns: int, dtype: Any, target: str) -> None:
    values = _rows(np.random.default_rng(columns), 300, columns, dtype)
    with jax.enable_x64(True):
        lowered = jax.jit(lambda x: (x.max(1), x.min(1))).lower(values)
    session = hloforge.compile(hloforge.as_program(lowered), target=target, options=CompileOptions(cache=False)).load()
    for got, greatest in zip(session(values), (True, False), strict=True):
        want = np.array([_extreme(row, greatest=greatest) for row in values.astype(np.float64)])
        found = np.asarray(got).astype(np.float64)
        np.testing.assert_array_equal(found, want)
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(want)[known])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "magnitudes": lambda x: jnp.abs(x).max(-1),
    "of all dimensions": lambda x: x.min(),
    "of two dimensions": lambda x: x.max((0, 2)) if x.ndim > 2 else x.max((0, 1)),
    "both": lambda x: (x.max(-1), x.min(-1), (x * 2 + 1).max(-1)),
    "with a limit": lambda x: jnp.max(x, axis=-1, initial=0.25),
    "under a mask": lambda x: jnp.where(x > 0, x, -jnp.inf).max(-1),
    "of differences": lambda x: (x - x[..., :1]).max(-1),
    "of a part": lambda x: x[..., 1:-2].max(-1),
    "of rows that are reshaped": lambda x: (
        x.reshape(-1, x.shape[-1] // 2 * x.shape[0]).max(-1) if x.ndim < 3 else x.max()
    ),
    "across": lambda x: jnp.swapaxes(x, 0, -1).max(-1),
    "reversed": lambda x: x[..., ::-1].min(-1),
    "in others' units": lambda x: (
        (x - x.max(-1, keepdims=True)) / (x.max(-1, keepdims=True) - x.min(-1, keepdims=True))
    ),
}


@pytest.mark.wide(8)
@pytest.mark.parametrize("name", _FUNCTIONS)
@pytest.mark.parametrize("shape", [(40, 40), (3, 2000), (5, 7, 68), (2, 3, 16), (1, 300)])
def test_functions(name: str, shape: tuple[int, ...]) -> None:
    check(_FUNCTIONS[name], normal(*shape))


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8])
def test_types(dtype: Any) -> None:
    values = (normal(30, 150) * 20).astype(dtype)
    check(lambda x: (x.max(1), x.min(1), x.astype(jnp.float32).max(1)), values)


def test_rows_are_vectors() -> None:
    program = hloforge.as_program(jax.jit(lambda x: x.max(-1)).lower(normal(1000, 100)))
    lower(program.module)
    (text,) = generate(program.module, parse_targets("cpu:znver4")[0].machine).kernels
    assert "llvm.vector.reduce.fmax.v16f32" in text
