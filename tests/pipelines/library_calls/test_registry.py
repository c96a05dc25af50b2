"""The registry of custom calls: what it reads of a call, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import UnsupportedError
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, decompositions

MATRIX = "tensor<2x2xf32>"


def potrf(configuration: str, target: str = "lapack_spotrf_ffi") -> str:
    return f"""func.func @main(%a: {MATRIX}) -> ({MATRIX}, tensor<i32>) {{
      %l, %info = stablehlo.custom_call @{target}(%a) {{
        {configuration}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]
      }} : ({MATRIX}) -> ({MATRIX}, tensor<i32>)
      return %l, %info : {MATRIX}, tensor<i32>
    }}"""


@pytest.mark.parametrize(
    "configuration",
    [
        'backend_config = "", mhlo.backend_config = {uplo = 76 : ui8}',
        "api_version = 4 : i32, backend_config = {uplo = 76 : ui8}",
    ],
    ids=["as JAX writes it", "as XLA reads it"],
)
def test_a_call_reads_its_logical_operand_whatever_its_layouts(configuration: str) -> None:
    factor, info = hloforge.compile(potrf(configuration)).load()(np.array([[4, 7], [2, 10]], np.float32))
    np.testing.assert_array_equal(factor, [[2, 7], [1, 3]])
    assert info == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("{}", "no setting 'uplo'"),
        ("{uplo = 88 : ui8}", "uplo = 'X', which is none of L, U"),
        ("{uplo = 76 : ui8, pivot = true}", "a setting 'pivot', which hloforge does not know"),
    ],
    ids=["missing", "another letter", "unknown"],
)
def test_a_setting_that_is_not_understood_is_refused(settings: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        hloforge.compile(potrf(f"api_version = 4 : i32, backend_config = {settings}"))
    assert caught.value.location is not None
    assert caught.value.location.line == 2


def test_an_unknown_target_names_those_that_it_may_mean() -> None:
    with pytest.raises(UnsupportedError, match="@lapack_spotri_ffi") as caught:
        hloforge.compile(potrf("api_version = 4 : i32", "lapack_spotri_ffi"))
    assert "lapack_spotrf_ffi" in caught.value.hint


def test_info_is_the_first_column_that_fails() -> None:
    # 70 columns are two blocks of rows; the leading minors of an indefinite matrix tell where it fails.
    n = 70
    diagonals = np.ones((5, n))
    for batch, column in enumerate([0, 5, 63, 69]):
        diagonals[batch, column] = -1
    a = np.stack([np.diag(diagonal) for diagonal in diagonals])
    a[1, 20, 20] = np.nan
    matrices = f"tensor<5x{n}x{n}xf64>"

    def call(names: str, letter: int) -> str:
        return f"""{names} = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {{
          api_version = 4 : i32, backend_config = {{uplo = {letter} : ui8}}
        }} : ({matrices}) -> ({matrices}, tensor<5xi32>)"""

    text = f"""func.func @main(%a: {matrices}) -> (tensor<5xi32>, tensor<5xi32>) {{
      {call("%l, %i", ord("L"))}
      {call("%u, %j", ord("U"))}
      return %i, %j : tensor<5xi32>, tensor<5xi32> }}"""
    lower, upper = hloforge.compile(text).load()(a)
    np.testing.assert_array_equal(lower, [1, 6, 64, 70, 0])
    np.testing.assert_array_equal(upper, [1, 6, 64, 70, 0])


def test_a_portable_eigh_reads_the_triangle_that_its_text_names() -> None:
    def program(configuration: str) -> str:
        return f"""func.func @main(%a: tensor<2x3x3xf64>) -> (tensor<2x3x3xf64>, tensor<2x3xf64>) {{
          %v, %w = stablehlo.custom_call @Eigh(%a) {{backend_config = "{configuration}"}}
            : (tensor<2x3x3xf64>) -> (tensor<2x3x3xf64>, tensor<2x3xf64>)
          return %v, %w : tensor<2x3x3xf64>, tensor<2x3xf64> }}"""

    a = np.random.default_rng(0).standard_normal((2, 3, 3))
    upper = np.triu(a) + np.swapaxes(np.triu(a, 1), 1, 2)
    vectors, values = hloforge.compile(program("0,1,100,1e-6")).load()(a)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(upper), atol=1e-13)
    np.testing.assert_allclose(upper @ vectors, vectors * values[:, None], atol=1e-13)
    with pytest.raises(UnsupportedError, match="lower,sort,turns,tolerance") as caught:
        hloforge.compile(program("jacobi"))
    assert caught.value.location is not None


def test_a_target_has_one_decomposition() -> None:
    def other(call: CustomCall) -> list[hloforge.Value]:
        return list(call.operands)

    assert "lapack_spotrf_ffi" in decompositions()
    with pytest.raises(ValueError, match="lapack_spotrf_ffi is registered twice"):
        custom_call_target("lapack_spotrf_ffi")(other)


def test_portable_calls() -> None:
    """XLA's own names: the comparator of TopK and the contents of AllocateBuffer say nothing new."""
    text = """func.func @main(%a: tensor<2x4xf32>)
        -> (tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x4xf32>, tensor<3xf32>) {
      %v, %i = stablehlo.custom_call @TopK(%a) {called_computations = [@greater]}
        : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
      %e = stablehlo.custom_call @mhlo.erf_inv(%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %b = stablehlo.custom_call @AllocateBuffer() : () -> tensor<3xf32>
      return %v, %i, %e, %b : tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x4xf32>, tensor<3xf32>
    }
    func.func @greater(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
      %r = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      return %r : tensor<i1>
    }"""
    x = np.array([[0.1, 0.5, -0.2, 0.3], [0.0, -0.9, 0.9, 0.2]], np.float32)
    values, indices, inverse, buffer = hloforge.compile(text).load()(x)
    np.testing.assert_array_equal(indices, [[1, 3], [2, 3]])
    np.testing.assert_array_equal(values, np.take_along_axis(x, indices, 1))
    # erf of these, by its series in float64.
    np.testing.assert_allclose(inverse[0], [0.08885599, 0.47693628, -0.17914345, 0.27246271], rtol=1e-5)
    assert buffer.shape == (3,)
