"""refine-dynamism: sizes are evaluated; what is left is static, and StableHLO's interpreter agrees with numpy."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.dynamic.refine_dynamism import RefineDynamism
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.inline_calls import InlineCalls
from tests.engines import interpret

SIZES_OF_SIZES = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<?x?xf32>) {
  %a = stablehlo.get_dimension_size %x, dim = 0 : (tensor<2x3xf32>) -> tensor<i32>
  %b = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  %m = stablehlo.multiply %a, %b : tensor<i32>
  %r = call @flat(%m, %x) : (tensor<i32>, tensor<2x3xf32>) -> tensor<?xf32>
  %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %t = stablehlo.add %r, %i : tensor<?xf32>
  %five = stablehlo.constant dense<[5]> : tensor<1xi32>
  %none = stablehlo.constant dense<[0]> : tensor<1xi32>
  %one = stablehlo.constant dense<[1]> : tensor<1xi32>
  %q = stablehlo.real_dynamic_slice %t, %none, %five, %one
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %v = stablehlo.constant dense<7.0> : tensor<f32>
  %p = stablehlo.dynamic_pad %q, %v, %one, %none, %none
    : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<6xf32>
  %z = stablehlo.concatenate %s, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %w = stablehlo.dynamic_broadcast_in_dim %p, %z, dims = [0] : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %p, %w : tensor<6xf32>, tensor<?x?xf32>
}
func.func private @flat(%n: tensor<i32>, %x: tensor<2x3xf32>) -> tensor<?xf32> {
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_reshape %x, %s : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""


def test_sizes_that_the_program_fixes() -> None:
    module = parse_module(SIZES_OF_SIZES)
    PassManager([InlineCalls(), RefineDynamism()]).run(module)
    assert "dynamic" not in str(module) and "?" not in str(module)
    padded, column = interpret(module, np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(padded, [7, 0, 2, 4, 6, 8])
    np.testing.assert_array_equal(column, padded[:, None])


def test_dynamic_arguments_stay_dynamic() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
      %r = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
      return %r : tensor<?x?xf32> }"""
    module = parse_module(text)
    PassManager([RefineDynamism()]).run(module)
    assert "stablehlo.dynamic_reshape" in str(module)
