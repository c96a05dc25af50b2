"""decompose-map: judged by numpy, through StableHLO's interpreter."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.map import DecomposeMap
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret


def lowered(text: str) -> str:
    module = parse_module(text)
    PassManager([DecomposeMap()]).run(module)
    assert "stablehlo.map" not in str(module)
    return str(module)


def test_arithmetic_runs_on_whole_arrays() -> None:
    text = lowered("""func.func @main(%x: tensor<3x4xi32>, %y: tensor<3x4xi32>) -> tensor<3x4xi32> {
      %r = "stablehlo.map"(%x, %y) ({ ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %k = stablehlo.constant dense<1> : tensor<i32>
        %c = stablehlo.multiply %a, %b : tensor<i32>
        %d = stablehlo.add %c, %k : tensor<i32>
        stablehlo.return %d : tensor<i32>
      }) {dimensions = array<i64: 0, 1>} : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
      return %r : tensor<3x4xi32> }""")
    assert "stablehlo.while" not in text
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    np.testing.assert_array_equal(interpret(text, x, x[::-1])[0], x * x[::-1] + 1)


def test_a_loop_runs_for_each_element() -> None:
    text = lowered("""func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xi32> {
      %r = "stablehlo.map"(%x) ({ ^bb0(%a: tensor<f32>):
        %ten = stablehlo.constant dense<10.0> : tensor<f32>
        %q = stablehlo.while(%i = %a) : tensor<f32>
          cond { %p = stablehlo.compare LT, %i, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
                 stablehlo.return %p : tensor<i1> }
          do { %s = stablehlo.add %i, %i : tensor<f32> stablehlo.return %s : tensor<f32> }
        %d = stablehlo.convert %q : (tensor<f32>) -> tensor<i32>
        stablehlo.return %d : tensor<i32>
      }) {dimensions = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<2x2xi32>
      return %r : tensor<2x2xi32> }""")
    x = np.array([[1, 3], [10, 7]], np.float32)
    np.testing.assert_array_equal(interpret(text, x)[0], [[16, 12], [10, 14]])


def test_no_elements_take_no_loop() -> None:
    text = lowered("""func.func @main(%x: tensor<2x0xf32>) -> tensor<2x0xf32> {
      %r = "stablehlo.map"(%x) ({ ^bb0(%a: tensor<f32>):
        %ten = stablehlo.constant dense<10.0> : tensor<f32>
        %q = stablehlo.while(%i = %a) : tensor<f32>
          cond { %p = stablehlo.compare LT, %i, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
                 stablehlo.return %p : tensor<i1> }
          do { %s = stablehlo.add %i, %i : tensor<f32> stablehlo.return %s : tensor<f32> }
        stablehlo.return %q : tensor<f32>
      }) {dimensions = array<i64: 0, 1>} : (tensor<2x0xf32>) -> tensor<2x0xf32>
      return %r : tensor<2x0xf32> }""")
    assert interpret(text, np.zeros((2, 0), np.float32))[0].shape == (2, 0)
