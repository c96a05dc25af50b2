"""decompose-triangular-solve in all forms, by substitution of the solution in float64."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.triangular_solve import DecomposeTriangularSolve
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret

RANDOM = np.random.default_rng(0)


def solve(a: np.ndarray, b: np.ndarray, *, left: bool, lower: bool, unit: bool, form: str) -> np.ndarray:
    types = [f"tensor<{'x'.join(map(str, value.shape))}xf64>" for value in (a, b)]
    module = parse_module(f"""func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[1]} {{
      %x = "stablehlo.triangular_solve"(%a, %b) {{left_side = {str(left).lower()}, lower = {str(lower).lower()},
        unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {form}>}}
        : ({types[0]}, {types[1]}) -> {types[1]}
      return %x : {types[1]} }}""")
    PassManager([DecomposeTriangularSolve()]).run(module)
    assert "triangular_solve" not in str(module)
    return interpret(module, a, b)[0]


@pytest.mark.parametrize("form", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_the_solution_satisfies_the_equation(left: bool, lower: bool, unit: bool, form: str) -> None:
    a = RANDOM.normal(size=(2, 4, 4)) + 4 * np.eye(4)
    b = RANDOM.normal(size=(2, 4, 3) if left else (2, 3, 4))
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle - np.einsum("bij,ij->bij", triangle, np.eye(4)) + np.eye(4)
    matrix = triangle if form == "NO_TRANSPOSE" else triangle.swapaxes(1, 2)
    # What lies outside of the triangle must not be read.
    a = np.where(np.tril(np.ones((4, 4), bool)) if lower else np.triu(np.ones((4, 4), bool)), a, np.nan)
    x = solve(a, b, left=left, lower=lower, unit=unit, form=form)
    np.testing.assert_allclose(matrix @ x if left else x @ matrix, b, rtol=1e-10, atol=1e-10)


def test_a_matrix_without_batch_dimensions() -> None:
    a, b = np.tril(RANDOM.normal(size=(5, 5))) + 5 * np.eye(5), RANDOM.normal(size=(5, 1))
    x = solve(a, b, left=True, lower=True, unit=False, form="NO_TRANSPOSE")
    np.testing.assert_allclose(a @ x, b, rtol=1e-12, atol=1e-12)


def test_a_dynamic_size_is_left() -> None:
    text = """func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %x = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
      return %x : tensor<?x1xf32> }"""
    module = parse_module(text)
    PassManager([DecomposeTriangularSolve()]).run(module)
    assert "triangular_solve" in str(module)
