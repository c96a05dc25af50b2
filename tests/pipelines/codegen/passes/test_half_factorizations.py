"""legalize-half-factorizations: factors and solutions of 16-bit floats, computed in f32."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import normal
from tests.pipelines.codegen.whole_programs import compiled

_TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
_CHOLESKY = """func.func @main(%a: tensor<2x6x6xT>) -> tensor<2x6x6xT> {{
  %l = "stablehlo.cholesky"(%a) {{lower = true}} : (tensor<2x6x6xT>) -> tensor<2x6x6xT>
  return %l : tensor<2x6x6xT> }}"""
_SOLVE = """func.func @main(%a: tensor<6x6xT>, %b: tensor<6x3xT>) -> tensor<6x3xT> {{
  %x = "stablehlo.triangular_solve"(%a, %b) {{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}} : (tensor<6x6xT>, tensor<6x3xT>) -> tensor<6x3xT>
  return %x : tensor<6x3xT> }}"""


def _run(text: str, element: str, *arguments: Any) -> np.ndarray[Any, Any]:
    program = hloforge.as_program(text.format().replace("xT>", f"x{element}>"))
    return np.asarray(compiled(program).load()(*arguments))


@pytest.mark.parametrize("element", list(_TYPES))
def test_a_factor_is_rounded_once(element: str) -> None:
    x = normal(2, 6, 6)
    a = (x @ x.transpose(0, 2, 1) + 6 * np.eye(6, dtype=np.float32)).astype(_TYPES[element])
    got = _run(_CHOLESKY, element, a)
    assert got.dtype == a.dtype
    # The factor of the rounded matrix in f64, rounded as often as the result: to its nearest, or beside a tie of f32.
    exact = np.linalg.cholesky(a.astype(np.float64))
    step = float(jnp.finfo(a.dtype).eps)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=0.51 * step, atol=1e-6)


@pytest.mark.parametrize("element", list(_TYPES))
def test_a_solution_is_rounded_once(element: str) -> None:
    a = (np.tril(normal(6, 6)) + 4 * np.eye(6, dtype=np.float32)).astype(_TYPES[element])
    b = normal(6, 3).astype(_TYPES[element])
    got = _run(_SOLVE, element, a, b)
    exact = np.linalg.solve(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=0.51 * float(jnp.finfo(a.dtype).eps), atol=1e-6)
