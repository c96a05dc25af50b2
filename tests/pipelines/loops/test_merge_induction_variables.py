"""merge-induction-variables: of counters that count alike one is read, and others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.loops.merge_induction_variables import MergeInductionVariables
from tests.engines import shared_reference

TEXT = """func.func @main(%x: tensor<5x3xf32>, %other: tensor<i32>) -> (tensor<3xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %again = stablehlo.constant dense<FIRST> : tensor<i32>
  %start = stablehlo.constant dense<1.0> : tensor<3xf32>
  %last:3 = stablehlo.while(%i = %zero, %j = SECOND, %v = %start) : tensor<i32>, tensor<i32>, tensor<3xf32>
   cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %same = stablehlo.constant dense<4> : tensor<i32>
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %too = stablehlo.compare LT, %j, %same : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %both = stablehlo.and %more, %too : tensor<i1>
    stablehlo.return %both : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %step = stablehlo.constant dense<STEP> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %following = stablehlo.add LEFT, %step : tensor<i32>
    %row = stablehlo.dynamic_slice %x, %j, %i, sizes = [1, 3]
      : (tensor<5x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %flat = stablehlo.reshape %row : (tensor<1x3xf32>) -> tensor<3xf32>
    %sum = stablehlo.subtract %flat, %v : tensor<3xf32>
    stablehlo.return %next, %following, %sum : tensor<i32>, tensor<i32>, tensor<3xf32>
  }
  return %last#2, %last#1 : tensor<3xf32>, tensor<i32>
}
"""


@pytest.mark.parametrize(
    ("first", "second", "step", "left", "is_merged"),
    [
        ("0", "%again", "1", "%j", True),
        ("1", "%again", "1", "%j", False),  # begins elsewhere
        ("0", "%other", "1", "%j", False),  # begins nobody knows where
        ("0", "%again", "2", "%j", False),
        ("0", "%again", "1", "%i", True),  # one ahead of the other, which is the same
    ],
)
def test_counters_that_count_alike_are_one(first: str, second: str, step: str, left: str, is_merged: bool) -> None:
    names = {"FIRST": first, "SECOND": second, "STEP": step, "LEFT": left}
    text = TEXT
    for name, value in names.items():
        text = text.replace(name, value)
    program = hloforge.read(text)
    merged = program.clone()
    MergeInductionVariables().run(merged.module)
    assert merged.module.operation.verify()
    assert bool(operations(merged.module, ["stablehlo.and"])) is not is_merged
    arguments = np.random.default_rng(2).standard_normal((5, 3)).astype(np.float32), np.array(2, np.int32)
    expected = shared_reference("interpreter").prepare(program)(*arguments)
    for found in (
        shared_reference("interpreter").prepare(merged)(*arguments),
        hloforge.compile(program)(*arguments),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
