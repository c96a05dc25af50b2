"""legalize-float-to-integer: XLA's saturating conversion, judged by exact arithmetic on Python integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hloforge.dialect.element_types import TABLE, element_type
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.float_to_integer import LegalizeFloatToInteger, float_limits, integer_limits
from tests.engines import interpret

SOURCES = [element_type(name) for name in ("bf16", "f16", "f32", "f64")]
TARGETS = [row for row in TABLE if row.is_integer and row.bits >= 8]
EDGES = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.9,
    -1.9,
    127.0,
    128.0,
    -128.0,
    -129.0,
    255.0,
    256.0,
    32767.0,
    32768.0,
    65535.0,
    65536.0,
]
EDGES += [2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 3e38, -3e38, math.inf, -math.inf, math.nan]


def saturated(value: float, least: int, greatest: int) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return greatest if value > 0 else least
    return min(max(math.trunc(value), least), greatest)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_conversion_saturates(source: object, target: object) -> None:
    with np.errstate(over="ignore"):
        edges = np.array(EDGES).astype(source.dtype)
    shape = f"tensor<{edges.size}x"
    module = parse_module(f"""func.func @main(%x: {shape}{source.mlir}>) -> {shape}{target.mlir}> {{
      %0 = stablehlo.convert %x : ({shape}{source.mlir}>) -> {shape}{target.mlir}>
      return %0 : {shape}{target.mlir}> }}""")
    PassManager([LegalizeFloatToInteger()]).run(module)
    (result,) = interpret(module, edges)
    expected = [saturated(float(value), *integer_limits(target)) for value in edges]
    assert [int(value) for value in result] == expected


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_limits_are_inside_the_integer_and_the_next_float_is_not(source: object, target: object) -> None:
    low, high = float_limits(source, target)
    least, greatest = integer_limits(target)
    assert least <= int(low)
    assert int(high) <= greatest
    with np.errstate(over="ignore"):
        above = np.nextafter(np.asarray(high).astype(source.dtype), np.asarray(np.inf).astype(source.dtype))
    assert math.isinf(float(above)) or int(float(above)) > greatest or high == int(high) == greatest


def test_predicates_and_other_conversions_are_left() -> None:
    text = """func.func @main(%x: tensor<2xf32>, %i: tensor<2xi32>) -> (tensor<2xi1>, tensor<2xi8>) {
      %0 = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi1>
      %1 = stablehlo.convert %i : (tensor<2xi32>) -> tensor<2xi8>
      return %0, %1 : tensor<2xi1>, tensor<2xi8> }"""
    module = parse_module(text)
    PassManager([LegalizeFloatToInteger()]).run(module)
    assert str(module) == str(parse_module(text))
