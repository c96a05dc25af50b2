"""Extremes of floats along rows, which are those of integers in registers, beside XLA and to the bit."""

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
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
_NAN = np.uint64(0xFFF8_0000_0000_0000).view(np.float64)


def _special(rows: int, columns: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Rows with zeros of both signs, infinities, and NaN of both signs at any place."""
    random = np.random.default_rng(columns)
    x = random.standard_normal((rows, columns))
    few = [0.0, -0.0, np.inf, -np.inf, np.nan, _NAN]
    for row in range(rows):
        if row % 4 == 0:
            x[row] = random.choice([0.0, -0.0], columns)
        elif row % 4 == 1:
            x[row] = random.choice([np.inf, -np.inf], columns)
        else:
            x[row, random.integers(columns)] = few[row % len(few)]
    x[0] = 0.0 if columns % 2 else -0.0
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (12, 7), (9, 40), (24, 100), (40, 33), (3, 1000)])
def test_zeros_infinities_and_nan(rows: int, columns: int, dtype: Any) -> None:
    """NaN of either sign passes through, and -0 is less than +0."""
    x = _special(rows, columns, dtype)
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(lambda x: (x.max(-1), x.min(-1))).lower(x))
    _check_extremes(x, compiled(program).load()(x))


def _check_extremes(rows: np.ndarray[Any, Any], results: Any) -> None:
    """Maxima and minima of rows, by the order of the numbers, and of their signs where these are equal."""
    wide = rows.astype(np.float64)
    for got, sign in zip(results, (1, -1), strict=True):
        for number, row in zip(np.asarray(got).astype(np.float64).reshape(-1), wide * sign, strict=True):
            if np.isnan(row).any():
                assert np.isnan(number)
                continue
            want = max(row, key=lambda one: (one, not np.signbit(one))) * sign
            assert number == want
            assert np.signbit(number) == np.signbit(want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [3, 7])
def test_extremes_of_few_columns(columns: int, dtype: Any) -> None:
    """Vectors of the rows; a line of so few would be none."""
    rows = _special(4 * columns, 41, dtype)
    x = np.ascontiguousarray(rows.reshape(4, columns, 41).transpose(0, 2, 1))
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(lambda x: (x.max(1), x.min(1))).lower(x))
    _check_extremes(rows, compiled(program).load()(x))


_PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "with sums": lambda x: (x.max(-1), x.sum(-1), x.min(-1)),
    "bounded": lambda x: jnp.max(x, -1, initial=0.5),
    "of what is computed": lambda x: jnp.exp(x).max(-1) + jnp.abs(x).min(-1),
    "with a map": lambda x: (lambda y: (y, y.max(-1)))(x * x - 1),
    "of two dimensions": lambda x: x.reshape(-1, 2, x.shape[-1]).max((1, 2)),
    "softmax": lambda x: jax.nn.softmax(x),
    "in a loop": lambda x: jax.lax.fori_loop(0, 5, lambda _, y: y - 0.1 * y.max(-1, keepdims=True), x),
}


@pytest.mark.wide(6)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", _PROGRAMS)
@pytest.mark.parametrize("shape", [(2, 5), (10, 30), (34, 100), (4, 1037)])
def test_programs(name: str, shape: tuple[int, int], dtype: Any) -> None:
    check(_PROGRAMS[name], normal(*shape, dtype=dtype))


@pytest.mark.wide(5)
@pytest.mark.parametrize("columns", [33, 64, 100, 128, 129, 200, 300])
@pytest.mark.parametrize("rows", [1, 10, 33, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_places_of_extremes(rows: int, columns: int, dtype: Any) -> None:
    """The first of equal ones, and of NaN."""
    x = np.random.default_rng(columns).integers(-9, 9, (rows, columns)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[rows // 2, columns // 3 :: 5] = np.nan
    check(lambda x: (x.argmax(-1), x.argmin(-1)), x)


@pytest.mark.parametrize("columns", [2, 5, 12])
@pytest.mark.parametrize("index", [np.int32, np.uint8])
def test_places_of_extremes_of_columns(columns: int, index: Any) -> None:
    """Over rows, several of which may be taken at once."""
    x = np.random.default_rng(columns).integers(-9, 9, (250, columns)).astype(np.float32)
    x[101:240:3, columns // 2] = np.nan
    check(lambda x: jax.lax.argmax(x, 0, index), x)


def test_loops_have_extremes_of_integers() -> None:
    """A maximum of floats takes six instructions, each of which waits for the one before."""
    program = hloforge.as_program(jax.jit(lambda x: jnp.exp(x).max(-1)).lower(normal(1000, 100)))
    lower(program.module)
    (text,) = generate(program.module, parse_targets("cpu:znver4")[0].machine).kernels
    assert "smax" in text
    assert "llvm.maximum" not in text
