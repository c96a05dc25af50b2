"""legalize-whole-slices: what takes or overwrites a whole array, judged by StableHLO's interpreter."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.whole_slices import LegalizeWholeSlices
from tests.engines import interpret

WHOLE = """func.func @main(%x: tensor<2x3xf32>, %part: tensor<2x3xf32>, %i: tensor<i32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = stablehlo.dynamic_update_slice %x, %part, %i, %i
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %b = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 3]
      : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %c = stablehlo.slice %a [0:2, 0:3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = stablehlo.reshape %b : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %a, %b, %c, %d : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> }"""

PARTS = """func.func @main(%x: tensor<2x3xf32>, %row: tensor<1x3xf32>, %i: tensor<i32>)
    -> (tensor<2x3xf32>, tensor<2x2xf32>, tensor<1x3xf32>, tensor<3x2xf32>) {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.dynamic_update_slice %x, %row, %i, %none
      : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %b = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  %c = stablehlo.dynamic_slice %a, %i, %none, sizes = [1, 3]
      : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
  %d = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %a, %b, %c, %d : tensor<2x3xf32>, tensor<2x2xf32>, tensor<1x3xf32>, tensor<3x2xf32> }"""


def test_what_takes_or_overwrites_a_whole_array_is_dropped() -> None:
    x, part = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), -1, np.float32)
    for start in (-1, 0, 5):
        module = parse_module(WHOLE)
        expected = interpret(module, x, part, np.int32(start))
        PassManager([LegalizeWholeSlices()]).run(module)
        names = {"dynamic_update_slice", "dynamic_slice", "slice", "reshape"}
        assert not operations(module, {f"stablehlo.{name}" for name in names})
        for one, other in zip(interpret(module, x, part, np.int32(start)), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_parts_stay_as_they_are() -> None:
    module = parse_module(PARTS)
    before = str(module)
    PassManager([LegalizeWholeSlices()]).run(module)
    assert str(module) == before
