"""The readers of MLIR objects whose members jaxlib's stubs do not tell."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import dense_elements, entries, in_context, ir, parse_module
from hloforge.dialect.operations import integer, integers, operations, splat, stands_in

_MODULE = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %sevens = stablehlo.constant dense<7.5> : tensor<2x3xf32>
  %all = stablehlo.concatenate %x, %sevens, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %same = stablehlo.transpose %all, dims = [0, 1] : (tensor<2x6xf32>) -> tensor<2x6xf32>
  return %same : tensor<2x6xf32>
}
"""


def test_numbers_of_operations() -> None:
    module = parse_module(_MODULE)
    constant, joined, turned, end, function = operations(module)
    assert splat(constant) == 7.5
    assert integer(joined, "dimension") == 1
    assert integers(turned, "permutation") == [0, 1]
    assert integers(end, "permutation") == []
    assert stands_in(constant, "func.func")
    assert stands_in(function, "builtin.module")
    assert not stands_in(module.operation, "func.func")


def test_entries_of_a_dictionary() -> None:
    module = parse_module("module {}")
    with in_context(module):
        one, two = ir.StringAttr.get("one"), ir.BoolAttr.get(True)
        assert entries(ir.DictAttr.get({"b": two, "a": one})) == {"a": one, "b": two}
        assert entries(ir.DictAttr.get({})) == {}


def test_arrays_as_attributes() -> None:
    module = parse_module("module {}")
    with in_context(module):
        matrix = dense_elements(np.array([[1, -2]], np.int64))
        assert str(matrix) == "dense<[[1, -2]]> : tensor<1x2xi64>"
        typed = dense_elements(np.array([3, 4], np.int32), ir.VectorType.get([2], ir.IntegerType.get_signless(32)))
        assert str(typed) == "dense<[3, 4]> : vector<2xi32>"
