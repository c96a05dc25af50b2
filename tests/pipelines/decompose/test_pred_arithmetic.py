"""decompose-pred-arithmetic: the truth tables of StableHLO's arithmetic on booleans."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.pred_arithmetic import DecomposePredArithmetic
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret

A = np.array([False, False, True, True])
B = np.array([False, True, False, True])


@pytest.mark.parametrize(
    ("op", "expected"), [("add", A | B), ("maximum", A | B), ("multiply", A & B), ("minimum", A & B)]
)
def test_truth_table(op: str, expected: np.ndarray) -> None:
    module = parse_module(f"""func.func @main(%a: tensor<4xi1>, %b: tensor<4xi1>) -> tensor<4xi1> {{
      %r = stablehlo.{op} %a, %b : tensor<4xi1>
      return %r : tensor<4xi1> }}""")
    PassManager([DecomposePredArithmetic()]).run(module)
    assert op not in str(module)
    np.testing.assert_array_equal(interpret(module, A, B)[0], expected)


def test_the_reducer_of_a_reduction_is_rewritten() -> None:
    module = parse_module("""func.func @main(%a: tensor<4xi1>) -> tensor<i1> {
      %zero = stablehlo.constant dense<false> : tensor<i1>
      %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
      return %r : tensor<i1> }""")
    PassManager([DecomposePredArithmetic()]).run(module)
    assert "applies stablehlo.or" in str(module)


def test_integers_are_left_alone() -> None:
    module = parse_module("""func.func @main(%a: tensor<4xi8>) -> tensor<4xi8> {
      %r = stablehlo.add %a, %a : tensor<4xi8>
      return %r : tensor<4xi8> }""")
    PassManager([DecomposePredArithmetic()]).run(module)
    assert "stablehlo.add" in str(module)
