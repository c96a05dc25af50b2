"""legalize-equal-results: equal arrays in one dispatch with a third keep their values; folds change none."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.api import compile
from hloforge.dialect.mlir import ir, parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.equal_results import LegalizeEqualResults
from tests.engines import interpret

X = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
_MASK = """  %rows = stablehlo.iota dim = 0 : tensor<5x5xi32>
  %columns = stablehlo.iota dim = 1 : tensor<5x5xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<5x5xf32>
  %none = stablehlo.constant dense<0> : tensor<5x5xi32>
  %moved = stablehlo.add %rows, %none : tensor<5x5xi32>
  %lower = stablehlo.compare GE, %rows, %columns : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
  %again = stablehlo.compare GE, %moved, %columns : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
"""
_MASKED = """  %d = stablehlo.add %x, %x : tensor<5x5xf32>
  %y = stablehlo.select %lower, %d, %zeros : tensor<5x5xi1>, tensor<5x5xf32>
  %s = stablehlo.select %again, %y, %zeros : tensor<5x5xi1>, tensor<5x5xf32>
  %e = stablehlo.exponential %y : tensor<5x5xf32>
"""
_FUNCTION = "func.func @main(%x: tensor<5x5xf32>) -> (tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>) {\n"
_MAIN = f"{_FUNCTION}{_MASK}{_MASKED}  return %s, %e, %y : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32> }}"
_BRANCH = f"""{_FUNCTION}{_MASK}  %one = stablehlo.slice %x [0:1, 0:1] : (tensor<5x5xf32>) -> tensor<1x1xf32>
  %number = stablehlo.reshape %one : (tensor<1x1xf32>) -> tensor<f32>
  %p = stablehlo.compare GT, %number, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %r:3 = "stablehlo.if"(%p) ({{
{_MASKED}  stablehlo.return %s, %e, %y : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>
  }}, {{
  stablehlo.return %x, %x, %x : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>
  }}) : (tensor<i1>) -> (tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32> }}"""


@pytest.mark.parametrize("text", [_MAIN, _BRANCH], ids=["main", "branch"])
def test_equal_results_of_a_dispatch_are_not_its_first_one(text: str) -> None:
    again, exponential, masked = compile(text.encode()).load()(X * np.sign(X[0, 0]))
    expected = np.tril(2 * X * np.sign(X[0, 0]))
    np.testing.assert_array_equal(again, expected)
    np.testing.assert_array_equal(masked, expected)
    np.testing.assert_allclose(exponential, np.exp(expected), rtol=1e-6)


# Each computes %r of %x, an array of integers or booleans; the last column says how many operations are left.
_I32, _PRED = "tensor<3x3xi32>", "tensor<3x3xi1>"
FOLDED = {
    "transposed twice": (
        f"%a = stablehlo.transpose %x, dims = [1, 0] : ({_I32}) -> {_I32}\n"
        f"%r = stablehlo.transpose %a, dims = [1, 0] : ({_I32}) -> {_I32}",
        1,
    ),
    "transposed once": (f"%r = stablehlo.transpose %x, dims = [1, 0] : ({_I32}) -> {_I32}", 1),
    "added and taken away": (f"%a = stablehlo.add %b, %x : {_I32}\n%r = stablehlo.subtract %a, %b : {_I32}", 1),
    "taken away from": (f"%a = stablehlo.add %b, %x : {_I32}\n%r = stablehlo.subtract %b, %a : {_I32}", 2),
    "taken away and added": (f"%a = stablehlo.subtract %x, %b : {_I32}\n%r = stablehlo.add %b, %a : {_I32}", 1),
    "through narrow numbers": (
        "%a = stablehlo.convert %x : (tensor<3x3xi32>) -> tensor<3x3xi8>\n"
        "%r = stablehlo.convert %a : (tensor<3x3xi8>) -> tensor<3x3xi32>",
        2,
    ),
    "through wide numbers": (
        "%a = stablehlo.convert %x : (tensor<3x3xi32>) -> tensor<3x3xi64>\n"
        "%r = stablehlo.convert %a : (tensor<3x3xi64>) -> tensor<3x3xi32>",
        1,
    ),
    "through booleans": (
        f"%a = stablehlo.convert %x : ({_I32}) -> {_PRED}\n%r = stablehlo.convert %a : ({_PRED}) -> {_I32}",
        2,
    ),
    "other mask": (
        f"%p = stablehlo.compare LT, %x, %b : ({_I32}, {_I32}) -> {_PRED}\n%q = stablehlo.not %p : {_PRED}\n"
        f"%a = stablehlo.select %p, %x, %b : {_PRED}, {_I32}\n%r = stablehlo.select %q, %b, %a : {_PRED}, {_I32}",
        3,
    ),
    "largest again": (
        f"%a = stablehlo.maximum %x, %b : {_I32}\n%r = stablehlo.maximum %b, %a : {_I32}",
        1,
    ),
    "smallest of the largest": (f"%a = stablehlo.maximum %x, %b : {_I32}\n%r = stablehlo.minimum %b, %a : {_I32}", 2),
    "positions the other way": (
        "%i = stablehlo.iota dim = 0 : tensor<3xi32>\n"
        "%a = stablehlo.broadcast_in_dim %i, dims = [1] : (tensor<3xi32>) -> tensor<3x3xi32>\n"
        f"%c = stablehlo.iota dim = 0 : {_I32}\n%d = stablehlo.transpose %c, dims = [1, 0] : ({_I32}) -> {_I32}\n"
        f"%e = stablehlo.multiply %x, %a : {_I32}\n%f = stablehlo.multiply %d, %x : {_I32}\n"
        f"%r = stablehlo.subtract %e, %f : {_I32}",
        5,
    ),
    "rows and columns": (
        f"%i = stablehlo.iota dim = 0 : {_I32}\n%j = stablehlo.iota dim = 1 : {_I32}\n"
        f"%r = stablehlo.subtract %i, %j : {_I32}",
        3,
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folds_keep_every_value(name: str) -> None:
    lines, left = FOLDED[name]
    text = f"""func.func @main(%x: {_I32}, %b: {_I32}) -> {_I32} {{
      {lines}
      return %r : {_I32} }}"""
    module = parse_module(text)
    PassManager([LegalizeEqualResults()]).run(module)
    numbers = [np.random.default_rng(n).integers(-300, 300, (3, 3)).astype(np.int32) for n in range(2)]
    [expected], [folded] = interpret(parse_module(text), *numbers), interpret(module, *numbers)
    np.testing.assert_array_equal(folded, expected)
    assert len([op for op in operations(module) if op.name not in {"func.func", "func.return"}]) == left


_ROW = "tensor<6xf32>"
FLOATS = {
    "least of itself": (f"%r = stablehlo.minimum %x, %x : {_ROW}", True),
    "greatest of another": (f"%r = stablehlo.maximum %x, %b : {_ROW}", False),
    "times one": (f"%r = stablehlo.multiply %ones, %x : {_ROW}", True),
    "one by it": (f"%r = stablehlo.divide %ones, %x : {_ROW}", False),
    "and -0": (f"%n = stablehlo.constant dense<-0.0> : {_ROW}\n%r = stablehlo.add %x, %n : {_ROW}", True),
    "and 0": (f"%n = stablehlo.constant dense<0.0> : {_ROW}\n%r = stablehlo.add %x, %n : {_ROW}", False),
    "less 0": (f"%n = stablehlo.constant dense<0.0> : {_ROW}\n%r = stablehlo.subtract %x, %n : {_ROW}", True),
    "less itself": (f"%r = stablehlo.subtract %x, %x : {_ROW}", False),
}


@pytest.mark.parametrize("name", FLOATS)
def test_folds_of_floats_keep_signs_of_zeros_and_nan(name: str) -> None:
    lines, is_folded = FLOATS[name]
    text = f"""func.func @main(%x: {_ROW}, %b: {_ROW}) -> ({_ROW}, {_ROW}) {{
      %ones = stablehlo.constant dense<1.0> : {_ROW}
      {lines}
      %s = stablehlo.negate %r : {_ROW}
      return %r, %s : {_ROW}, {_ROW} }}"""
    module = parse_module(text)
    PassManager([LegalizeEqualResults()]).run(module)
    numbers = [np.asarray(row, np.float32) for row in ([0, -0.0, np.nan, np.inf, -1.5, 3], [1, 0, 2, np.nan, -7, -0.0])]
    for folded, expected in zip(interpret(module, *numbers), interpret(parse_module(text), *numbers), strict=True):
        np.testing.assert_array_equal(folded, expected)
        np.testing.assert_array_equal(np.signbit(folded), np.signbit(expected))
    result = operations(module, {"func.return"})[0].operands[0]
    assert isinstance(result.owner, ir.Block) is is_folded


def test_complex_constants_are_left_alone() -> None:
    text = """func.func @main(%x: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) {
      %one = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
      %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
      %some = stablehlo.constant dense<[(1.0, 2.0), (3.0, -1.0), (0.5, 0.0)]> : tensor<3xcomplex<f32>>
      %a = stablehlo.multiply %x, %ones : tensor<3xcomplex<f32>>
      %b = stablehlo.multiply %x, %some : tensor<3xcomplex<f32>>
      return %a, %b : tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>> }"""
    x = np.asarray([1 + 2j, -0.5j, 4], np.complex64)
    for found, factors in zip(compile(text.encode()).load()(x), ([1 + 2j] * 3, [1 + 2j, 3 - 1j, 0.5]), strict=True):
        np.testing.assert_allclose(found, x * np.asarray(factors, np.complex64), rtol=1e-6)


def test_what_a_loop_carries_twice_is_one_value() -> None:
    text = """func.func @main(%i: tensor<i32>, %x: tensor<3xf32>) -> (tensor<3xf32>, tensor<1xf32>, tensor<16x3xf32>) {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %none = stablehlo.constant dense<0> : tensor<i32>
      %r:4 = stablehlo.while(%n = %none, %a = %x, %b = %x, %c = %x)
        : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
      cond {
        %p = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %k = stablehlo.constant dense<[2.0, 5.0, -2.0]> : tensor<3xf32>
        %q = stablehlo.iota dim = 0 : tensor<3xf32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %m = stablehlo.add %n, %one : tensor<i32>
        stablehlo.return %m, %k, %q, %q : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
      }
      %s = stablehlo.dynamic_slice %r#3, %i, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
      %w = stablehlo.broadcast_in_dim %r#1, dims = [1] : (tensor<3xf32>) -> tensor<16x3xf32>
      return %r#2, %s, %w : tensor<3xf32>, tensor<1xf32>, tensor<16x3xf32> }"""
    given = np.int32(2), np.ones(3, np.float32)
    for one, other in zip(compile(text, cache=False).load()(*given), interpret(text, *given), strict=True):
        np.testing.assert_array_equal(one, other)
