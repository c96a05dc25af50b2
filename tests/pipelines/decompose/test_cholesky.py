"""decompose-cholesky by the product of its factor, in float64; the complex form by numpy on the target."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.cholesky import DecomposeCholesky
from hloforge.pipelines.framework.manager import PassManager
from hloforge.runtime.compile.compiler import compile_program
from tests.engines import interpret

RANDOM = np.random.default_rng(0)


def program(shape: tuple[int, ...], element: str, lower: bool) -> str:
    type_ = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    return f"""func.func @main(%a: {type_}) -> {type_} {{
      %l = stablehlo.cholesky %a, lower = {str(lower).lower()} : {type_}
      return %l : {type_} }}"""


def factor(a: np.ndarray, *, lower: bool) -> np.ndarray:
    module = parse_module(program(a.shape, "f64", lower))
    PassManager([DecomposeCholesky()]).run(module)
    assert "cholesky" not in str(module)
    return interpret(module, a)[0]


def positive(*shape: int) -> np.ndarray:
    root = RANDOM.normal(size=shape)
    return root @ root.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


@pytest.mark.parametrize("lower", [False, True])
def test_the_factor_gives_the_matrix_back(lower: bool) -> None:
    a = positive(2, 3, 5, 5)
    triangle = np.tril(np.ones((5, 5), bool)) if lower else np.triu(np.ones((5, 5), bool))
    result = factor(np.where(triangle, a, np.nan), lower=lower)
    np.testing.assert_array_equal(result[..., ~triangle], 0)
    transposed = result.swapaxes(-1, -2)
    np.testing.assert_allclose(result @ transposed if lower else transposed @ result, a, rtol=1e-12)


def test_only_the_matrix_that_is_not_positive_definite_is_nan() -> None:
    a = positive(2, 3, 3)
    a[1, 2, 2] = -1
    result = factor(a, lower=True)
    assert np.isnan(result[1]).all()
    np.testing.assert_allclose(result[0], np.linalg.cholesky(a[0]), rtol=1e-12)


def test_a_hermitian_matrix_on_the_target() -> None:
    root = RANDOM.normal(size=(4, 4)) + 1j * RANDOM.normal(size=(4, 4))
    a = root @ root.conj().T + 4 * np.eye(4)
    result = compile_program(read(program((4, 4), "complex<f64>", True))).load()(a)
    np.testing.assert_allclose(result, np.linalg.cholesky(a), rtol=1e-11, atol=1e-12)
