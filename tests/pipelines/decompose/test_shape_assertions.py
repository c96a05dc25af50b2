"""decompose-shape-assertions: what is known is checked at once, the rest by IREE's own assertion."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.shape_assertions import DecomposeShapeAssertions
from hloforge.pipelines.dynamic.refine_dynamism import RefineDynamism
from hloforge.pipelines.framework.manager import PassManager

TEXT = """
func.func @main(%x: tensor<{0}x4xf32>) -> tensor<{0}x4xf32> {{
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<{0}x4xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %odd = stablehlo.remainder %n, %two : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %ok = stablehlo.compare EQ, %odd, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n, %odd) {{
      has_side_effect = true, error_message = "{{0}} rows: {{1}} left"}}
    : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
  return %x : tensor<{0}x4xf32>
}}"""


def lowered(rows: str) -> str:
    module = parse_module(TEXT.format(rows))
    PassManager([RefineDynamism(), DecomposeShapeAssertions()]).run(module)
    return str(module)


def test_an_assertion_that_holds_is_gone() -> None:
    assert "assert" not in lowered("6")


def test_one_that_does_not_is_an_error_with_its_sizes() -> None:
    with pytest.raises(ArgumentError, match="5 rows: 1 left"):
        lowered("5")


def test_one_that_only_a_call_can_check() -> None:
    text = lowered("?")
    assert "custom_call" not in text
    assert '"shape assertion: {dimension 0 of arg0} rows: {a size computed from the arguments} left"' in text
    assert "arith.cmpi eq" in text
