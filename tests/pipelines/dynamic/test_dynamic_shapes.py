"""legalize-dynamic-shapes: what each operation becomes; tests/runtime/test_dynamic_shapes.py runs them all."""

from __future__ import annotations

import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.dynamic.dynamic_shapes import LegalizeDynamicShapes
from hloforge.pipelines.framework.manager import PassManager

BROADCAST = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?x4xf32>, %sizes: tensor<2xi32>) -> tensor<?x?xf32> {{
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %rows = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %known = stablehlo.concatenate %two, %rows, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %s = stablehlo.sine %x : tensor<?xf32>
  %r = stablehlo.dynamic_broadcast_in_dim %s, {0}, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}}"""


@pytest.mark.parametrize(("sizes", "by_index"), [("%known", False), ("%sizes", True)])
def test_a_dimension_that_cannot_expand_is_read_by_its_map(sizes: str, by_index: bool) -> None:
    module = parse_module(BROADCAST.format(sizes))
    PassManager([LegalizeDynamicShapes()], verify=False).run(module)
    text = str(module)
    assert "dynamic_broadcast_in_dim" not in text
    assert ("linalg.index" in text) is by_index


def test_what_is_static_stays() -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %i: tensor<2x1xi32>) -> tensor<2xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>} : (tensor<4xf32>, tensor<2x1xi32>)
    -> tensor<2xf32>
  return %r : tensor<2xf32>
}"""
    module = parse_module(text)
    before = str(module)
    PassManager([LegalizeDynamicShapes()]).run(module)
    assert str(module) == before
