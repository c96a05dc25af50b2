"""lower-mhlo: every operation of XLA's dialect has its form, judged by numpy in float64; the rest is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.normalize.lower_mhlo import LowerMhlo
from tests.engines import interpret

Array = np.ndarray[Any, Any]
LOWERED = [LowerMhlo(), NativePass("func.func(chlo-legalize-to-stablehlo)")]


def run(text: str, *inputs: Array) -> list[Array]:
    module = parse_module(text)
    PassManager(LOWERED).run(module)
    assert not [op.name for op in operations(module) if op.name.startswith("mhlo")]
    return interpret(module, *inputs)


def function(body: str, *types: str, result: str) -> str:
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip("xyz", types, strict=False))
    return f"func.func @main({arguments}) -> {result} {{\n {body}\n return %r : {result} }}"


UNIT = np.array([-1.0, -0.5, -0.0, 0.0, 0.25, 1.0])
ABOVE = np.array([1.0, 1.5, 2.0, 10.0, 1e10, np.inf])
# erf of UNIT, from tables: numpy has none.
ERF = np.array([-0.8427007929497149, -0.5204998778130465, -0.0, 0.0, 0.2763263901682369, 0.8427007929497149])
FUNCTIONS = {
    "acos": (UNIT, np.arccos(UNIT)),
    "asin": (UNIT, np.arcsin(UNIT)),
    "acosh": (ABOVE, np.arccosh(ABOVE)),
    "asinh": (UNIT, np.arcsinh(UNIT)),
    "atanh": (UNIT / 2, np.arctanh(UNIT / 2)),
    "cosh": (UNIT, np.cosh(UNIT)),
    "sinh": (UNIT, np.sinh(UNIT)),
    "erf": (UNIT, ERF),
    "tan": (UNIT, np.tan(UNIT)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", ["%r = mhlo.{} %x", "%r = stablehlo.custom_call @mhlo.{}(%x)"], ids=["op", "call"])
def test_elementwise(name: str, form: str) -> None:
    x, expected = FUNCTIONS[name]
    kind = "tensor<6xf64>" if form.endswith("%x") else "(tensor<6xf64>) -> tensor<6xf64>"
    (actual,) = run(function(f"{form.format(name)} : {kind}", "tensor<6xf64>", result="tensor<6xf64>"), x)
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=0)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


@pytest.mark.parametrize("dtype", ["f32", "i32", "ui8"])
@pytest.mark.parametrize("largest", [True, False])
def test_top_k(dtype: str, largest: bool) -> None:
    x = {
        "f32": np.array([3, -0.0, 7, 7, -np.inf, 0.5], np.float32),
        "i32": np.array([3, -(2**31), 7, 7, 2**31 - 1, 0], np.int32),
        "ui8": np.array([3, 0, 255, 7, 7, 128], np.uint8),
    }[dtype]
    body = f"""%v:2 = mhlo.topk(%x, k = 3, largest = {str(largest).lower()})
        : tensor<6x{dtype}> -> (tensor<3x{dtype}>, tensor<3xi32>)
      %i = mhlo.convert %v#1 : (tensor<3xi32>) -> tensor<3x{dtype}>
      %r = "mhlo.concatenate"(%v#0, %i) {{dimension = 0 : i64}}
        : (tensor<3x{dtype}>, tensor<3x{dtype}>) -> tensor<6x{dtype}>"""
    (actual,) = run(function(body, f"tensor<6x{dtype}>", result=f"tensor<6x{dtype}>"), x)
    order = np.argsort(-x.astype(np.float64) if largest else x.astype(np.float64), kind="stable")[:3]
    np.testing.assert_array_equal(actual, np.concatenate([x[order], order.astype(x.dtype)]))


def test_top_k_as_a_custom_call() -> None:
    body = """%v:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true},
        mhlo.version = 1 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
      %r = stablehlo.add %v#0, %v#0 : tensor<2xf32>"""
    (actual,) = run(function(body, "tensor<4xf32>", result="tensor<2xf32>"), np.array([1, 9, 3, 4], np.float32))
    np.testing.assert_array_equal(actual, [18, 8])


def test_operations_that_stablehlo_has_too() -> None:
    body = """%0 = mhlo.add %x, %y : tensor<2x2xf32>
      %1 = mhlo.multiply %0, %y : tensor<2x2xf32>
      %2 = mhlo.constant dense<0.0> : tensor<f32>
      %r = mhlo.reduce(%1 init: %2) applies mhlo.add across dimensions = [1] : (tensor<2x2xf32>, tensor<f32>)
        -> tensor<2xf32>"""
    x, y = np.array([[1, 2], [3, 4]], np.float32), np.array([[0, 1], [-1, 2]], np.float32)
    (actual,) = run(function(body, "tensor<2x2xf32>", "tensor<2x2xf32>", result="tensor<2xf32>"), x, y)
    np.testing.assert_array_equal(actual, ((x + y) * y).sum(1))


def test_multiply_high() -> None:
    text = function("%r = mhlo.mulhi %x, %y : tensor<2xi32>", "tensor<2xi32>", "tensor<2xi32>", result="tensor<2xi32>")
    module = parse_module(text)
    PassManager([LowerMhlo()]).run(module)
    assert operations(module, {"chlo.mulhi"})


def test_scan_and_ragged_dot_become_chlo() -> None:
    scan = parse_module("""func.func @main(%x: tensor<3x2xf32>, %y: tensor<2xf32>) -> tensor<3x2xf32> {
      %0, %1 = "mhlo.scan"(%x, %y) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>,
          resultSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%a: tensor<2xf32>, %c: tensor<2xf32>):
          %2 = mhlo.add %a, %c : tensor<2xf32>
          mhlo.return %2, %2 : tensor<2xf32>, tensor<2xf32>
      }) : (tensor<3x2xf32>, tensor<2xf32>) -> (tensor<3x2xf32>, tensor<2xf32>)
      return %0 : tensor<3x2xf32> }""")
    PassManager([LowerMhlo()]).run(scan)
    assert [op.name for op in operations(scan)][:3] == ["stablehlo.add", "stablehlo.return", "chlo.scan"]
    numbers = "#mhlo.ragged_dot<dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], "
    numbers += "rhs_contracting_dimensions = [1]>, lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
    types = ("tensor<4x3xf32>", "tensor<2x3x5xf32>", "tensor<2xi64>")
    body = f"""%r = "mhlo.ragged_dot"(%x, %y, %z) {{ragged_dot_dimension_numbers = {numbers}}}
        : ({", ".join(types)}) -> tensor<4x5xf32>"""
    ragged = parse_module(function(body, *types, result="tensor<4x5xf32>"))
    PassManager([LowerMhlo()]).run(ragged)
    assert operations(ragged, {"chlo.ragged_dot"})


def test_rounding_to_floats_by_random_bits_is_refused_with_its_place() -> None:
    text = """func.func @main(%x: tensor<2xf32>, %y: tensor<2xui32>) -> tensor<2xbf16> {
      %r = "mhlo.stochastic_convert"(%x, %y) : (tensor<2xf32>, tensor<2xui32>) -> tensor<2xbf16>
      return %r : tensor<2xbf16> }"""
    with pytest.raises(UnsupportedError, match="signed integers by random bits") as info:
        PassManager([LowerMhlo()]).run(parse_module(text))
    assert info.value.location.line == 2  # type: ignore[union-attr]
    assert "mhlo." in info.value.op
