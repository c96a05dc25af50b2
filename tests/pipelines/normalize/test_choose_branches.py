"""choose-branches: a constant's branch, judged by StableHLO's interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.choose_branches import ChooseBranches
from hloforge.pipelines.normalize.normalization import normalize
from tests.engines import interpret

NAMES = {"stablehlo.if", "stablehlo.case"}
NESTED = """func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %flag = stablehlo.constant dense<FLAG> : tensor<i1>
  %number = stablehlo.constant dense<NUMBER> : tensor<i32>
  %r = "stablehlo.if"(%p) ({
    %inner = "stablehlo.if"(%flag) ({
      %a = stablehlo.add %x, %x : tensor<4xf32>
      stablehlo.return %a : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    stablehlo.return %inner : tensor<4xf32>
  }, {
    %b = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %s = "stablehlo.case"(%number) ({
    stablehlo.return %r : tensor<4xf32>
  }, {
    %c = stablehlo.multiply %r, %r : tensor<4xf32>
    stablehlo.return %c : tensor<4xf32>
  }, {
    %d = stablehlo.subtract %r, %x : tensor<4xf32>
    stablehlo.return %d : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r, %s : tensor<4xf32>, tensor<4xf32> }"""


@pytest.mark.parametrize(("flag", "number"), [("true", 0), ("false", 1), ("true", 2), ("false", -1), ("true", 3)])
def test_the_branch_of_a_constant_takes_the_place_of_its_conditional(flag: str, number: int) -> None:
    module = parse_module(NESTED.replace("FLAG", flag).replace("NUMBER", str(number)))
    x = np.array([1, -2, 3, 0.5], np.float32)
    expected = [interpret(module, x, np.array(choice)) for choice in (True, False)]
    PassManager([ChooseBranches()]).run(module)
    (left,) = operations(module, NAMES)
    assert not operations(left, NAMES)
    for choice, results in zip((True, False), expected, strict=True):
        for one, other in zip(interpret(module, x, np.array(choice)), results, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_branch_of_another_size_that_is_never_taken_leaves_no_size_open() -> None:
    bounded = "tensor<?xf32, #stablehlo.bounds<4>>"
    module = parse_module(f"""func.func @main(%x: tensor<4xf32>) -> tensor<f32> {{
  %no = stablehlo.constant dense<false> : tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.if"(%no) ({{
    %none = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.set_dimension_size %x, %none, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {bounded}
    stablehlo.return %a : {bounded}
  }}, {{
    %all = stablehlo.constant dense<4> : tensor<i32>
    %b = stablehlo.set_dimension_size %x, %all, dim = 0 : (tensor<4xf32>, tensor<i32>) -> {bounded}
    stablehlo.return %b : {bounded}
  }}) : (tensor<i1>) -> {bounded}
  %s = stablehlo.reduce(%r init: %zero) applies stablehlo.add across dimensions = [0] : ({bounded}, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32> }}""")  # noqa: E501
    normalize(module)
    assert not operations(module, NAMES)
