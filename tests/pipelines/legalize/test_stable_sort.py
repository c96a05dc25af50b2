"""legalize-stable-sort: whatever sorts, equal keys keep their order; judged by numpy's stable argsort."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.legalize.stable_sort import LegalizeStableSort
from hloforge.pipelines.manager import PassManager
from tests.engines import interpret

KEYS = np.random.default_rng(0).integers(0, 4, size=(3, 50)).astype(np.float32)

SORT = """func.func @main(%k: tensor<3x50xf32>, %v: tensor<3x50xi32>) -> (tensor<3x50xf32>, tensor<3x50xi32>) {{
  %i = stablehlo.iota dim = 1 : tensor<3x50xi32>
  %0:2 = "stablehlo.sort"(%k, {values}) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }}) : (tensor<3x50xf32>, tensor<3x50xi32>) -> (tensor<3x50xf32>, tensor<3x50xi32>)
  return %0#0, %0#1 : tensor<3x50xf32>, tensor<3x50xi32> }}"""


def lowered(text: str) -> object:
    module = parse_module(text)
    PassManager([LegalizeStableSort()]).run(module)
    assert "is_stable = true" not in str(module)
    return module


def test_an_argsort_breaks_ties_by_its_own_iota() -> None:
    module = lowered(SORT.format(values="%i"))
    assert str(module).count("stablehlo.iota") == 1  # no operand was added
    _, order = interpret(module, KEYS, np.zeros((3, 50), np.int32))
    np.testing.assert_array_equal(order, np.argsort(KEYS, axis=1, kind="stable"))


def test_other_values_follow_a_position_operand() -> None:
    values = np.random.default_rng(1).integers(0, 99, size=(3, 50)).astype(np.int32)
    keys, moved = interpret(lowered(SORT.format(values="%v")), KEYS, values)
    order = np.argsort(KEYS, axis=1, kind="stable")
    np.testing.assert_array_equal(keys, np.take_along_axis(KEYS, order, 1))
    np.testing.assert_array_equal(moved, np.take_along_axis(values, order, 1))


SINGLE = """func.func @main(%k: tensor<6xTYPE>) -> tensor<6xTYPE> {
  %0 = "stablehlo.sort"(%k) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<TYPE>, %b: tensor<TYPE>):
    %p = stablehlo.compare GT, %a, %b : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<6xTYPE>) -> tensor<6xTYPE>
  return %0 : tensor<6xTYPE> }"""


def test_equal_integers_need_no_tie_breaker() -> None:
    module = lowered(SINGLE.replace("TYPE", "i32"))
    assert "iota" not in str(module)
    (result,) = interpret(module, np.array([3, -1, 7, 3, 0, 7], np.int32))
    np.testing.assert_array_equal(result, [7, 7, 3, 3, 0, -1])


def test_both_zeros_keep_their_order() -> None:
    (result,) = interpret(lowered(SINGLE.replace("TYPE", "f32")), np.array([-0.0, 1, 0.0, -0.0, -2, 0.0], np.float32))
    np.testing.assert_array_equal(np.signbit(result), [False, True, False, True, False, True])


@pytest.mark.parametrize("text", [SORT.format(values="%i").replace("is_stable = true", "is_stable = false")])
def test_an_unstable_sort_is_left(text: str) -> None:
    assert str(lowered(text)) == str(parse_module(text))
