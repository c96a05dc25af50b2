"""decompose-dynamic-windows: IR that StableHLO's interpreter evaluates at sizes that the program leaves open."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.dynamic.dynamic_windows import DecomposeDynamicWindows
from hloforge.pipelines.framework.manager import PassManager

RUNNING = """
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
  %s = stablehlo.add %a, %b : tensor<f32>
  return %s : tensor<f32>
}}
func.func @main(%x: tensor<{0}x2xf32>) -> tensor<?x2xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  {1}
  %less = stablehlo.constant dense<-1> : tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %none = stablehlo.constant dense<0> : tensor<1x2xi32>
  %ones = stablehlo.constant dense<1> : tensor<2xi32>
  %low = stablehlo.add %n, %less : tensor<1xi32>
  %high = stablehlo.constant dense<0> : tensor<1xi32>
  %pair = stablehlo.concatenate {2}, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %row = stablehlo.reshape %pair : (tensor<2xi32>) -> tensor<1x2xi32>
  %pads = stablehlo.concatenate %row, %none, dim = 0 : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x2xi32>
  %window = stablehlo.concatenate %n, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %window, %ones, %ones, %ones, %pads)
    {{called_computations = [@sum]}} : (tensor<{0}x2xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>,
    tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x2xf32>
  return %r : tensor<?x2xf32>
}}"""
READ = """%d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
  %n = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>"""


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_take_steps_and_no_windows(reverse: bool) -> None:
    module = parse_module(RUNNING.format("?", READ, "%high, %low" if reverse else "%low, %high"))
    PassManager([DecomposeDynamicWindows()]).run(module)
    text = str(module)
    assert "custom_call" not in text
    assert "stablehlo.while" in text
    assert "dynamic_pad" not in text


def test_a_call_of_known_sizes_is_the_operation() -> None:
    known = "%n = stablehlo.constant dense<3> : tensor<1xi32>"
    module = parse_module(RUNNING.format("3", known, "%low, %high"))
    # The arithmetic of sizes has become constants.
    text = str(module).replace("stablehlo.add %n, %less : tensor<1xi32>", "stablehlo.constant dense<2> : tensor<1xi32>")
    module = parse_module(text)
    from hloforge.pipelines.dynamic.refine_dynamism import RefineDynamism
    from tests.engines import interpret

    PassManager([RefineDynamism()]).run(module)
    assert "stablehlo.reduce_window" in str(module)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(interpret(module, x)[0], np.cumsum(x, axis=0))


CONVOLUTION = """
func.func @main(%x: tensor<1x?x1xf32>, %k: tensor<3x1x1xf32>, %pads: tensor<1x2xi32>) -> tensor<1x?x1xf32> {
  %r = "stablehlo.dynamic_conv"(%x, %k, %pads) {
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      lhs_dilation = array<i64: 2>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x?x1xf32>, tensor<3x1x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>
  return %r : tensor<1x?x1xf32>
}"""


def test_a_convolution_is_padded_first() -> None:
    module = parse_module(CONVOLUTION)
    PassManager([DecomposeDynamicWindows()]).run(module)
    text = str(module)
    assert "dynamic_conv" not in text
    assert text.index("dynamic_pad") < text.index("stablehlo.convolution")
    assert "lhs_dilate = [2]" not in text
