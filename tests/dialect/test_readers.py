"""The readers of MLIR objects whose members jaxlib's stubs do not tell."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import dense_elements, entries, in_context, ir, parse_module
from hloforge.dialect.operations import counted, integer, integers, operations, splat, stands_in

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


_NESTED = """
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<3xf32>
  cond {
    %go = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.tanh %a : tensor<3xf32>
    stablehlo.return %next, %b : tensor<i32>, tensor<3xf32>
  }
  REST
  return %w#1 : tensor<3xf32>
}
"""


def test_rare_operations_of_a_long_program_are_found_in_order() -> None:
    rest = "\n".join(f"%y{n} = stablehlo.{('add %x, %x', 'tanh %x')[n % 50 == 0]} : tensor<3xf32>" for n in range(600))
    module = parse_module(_NESTED.replace("REST", rest))
    sets = [{"stablehlo.tanh"}, {"stablehlo.add"}, {"stablehlo.tanh", "stablehlo.compare", "func.func"}, {"no.such"}]
    everything = operations(module)
    with counted(module):
        for names in sets:
            expected = [op for op in everything if op.name in names]
            assert operations(module, names) == expected
            # What the first walk found may choose another way for the second one.
            assert operations(module, names) == expected
        for op in operations(module, {"stablehlo.tanh"}):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        assert operations(module, {"stablehlo.tanh"}) == []
    assert [op.name for op in operations(module, {"stablehlo.while"})] == ["stablehlo.while"]
