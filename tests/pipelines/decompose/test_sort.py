"""decompose-sort: the network sorts as numpy does, and keeps the order of equal keys when asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from hloforge import Builder, Value, ops
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.dialect.values import leaves
from hloforge.pipelines.decompose.sort import DecomposeSort
from hloforge.pipelines.framework.manager import PassManager
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
    PassManager([DecomposeSort()]).run(module)
    assert not sorts_of(module)
    return module


def test_an_argsort_is_stable() -> None:
    _, order = interpret(lowered(SORT.format(values="%i")), KEYS, np.zeros((3, 50), np.int32))
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


def test_without_attributes_the_last_dimension_is_sorted() -> None:
    text = SINGLE.replace("TYPE", "i32").replace("<{dimension = 0 : i64, is_stable = true}>", "")
    (result,) = interpret(lowered(text), np.array([3, -1, 7, 3, 0, 7], np.int32))
    np.testing.assert_array_equal(result, [7, 7, 3, 3, 0, -1])


def test_integers_sort_downwards() -> None:
    (result,) = interpret(lowered(SINGLE.replace("TYPE", "i32")), np.array([3, -1, 7, 3, 0, 7], np.int32))
    np.testing.assert_array_equal(result, [7, 7, 3, 3, 0, -1])


def test_both_zeros_keep_their_order() -> None:
    (result,) = interpret(lowered(SINGLE.replace("TYPE", "f32")), np.array([-0.0, 1, 0.0, -0.0, -2, 0.0], np.float32))
    np.testing.assert_array_equal(np.signbit(result), [False, True, False, True, False, True])


def test_an_unstable_sort_loses_no_element() -> None:
    text = SORT.format(values="%v").replace("is_stable = true", "is_stable = false")
    values = np.arange(150, dtype=np.int32).reshape(3, 50)
    keys, moved = interpret(lowered(text), KEYS, values)
    np.testing.assert_array_equal(keys, np.sort(KEYS, axis=1))
    np.testing.assert_array_equal(np.sort(moved, axis=1), values)
    np.testing.assert_array_equal(keys.reshape(-1), KEYS.reshape(-1)[moved.reshape(-1)])


TOTAL = """func.func @main(%k: tensor<DIMSxf32>) -> tensor<DIMSxf32> {
  %0 = "stablehlo.sort"(%k) <{dimension = AXIS : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %minus = stablehlo.constant dense<-1.0> : tensor<f32>
    %c = stablehlo.multiply %a, %minus : tensor<f32>
    %d = stablehlo.multiply %b, %minus : tensor<f32>
    %p = stablehlo.compare GT, %c, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<DIMSxf32>) -> tensor<DIMSxf32>
  return %0 : tensor<DIMSxf32> }"""


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3).flatmap(
        lambda d: st.tuples(st.just(d), st.integers(0, len(d) - 1))
    )
)
@settings(max_examples=25)
def test_any_dimension_of_any_size(case: tuple[list[int], int]) -> None:
    dims, axis = case
    keys = np.random.default_rng(sum(dims)).normal(size=dims).astype(np.float32)
    text = TOTAL.replace("DIMS", "x".join(map(str, dims))).replace("AXIS", str(axis))
    np.testing.assert_array_equal(interpret(lowered(text), keys)[0], np.sort(keys, axis=axis))


def test_a_dynamic_size_is_left() -> None:
    text = SINGLE.replace("TYPE", "f32").replace("tensor<6x", "tensor<?x")
    module = parse_module(text)
    PassManager([DecomposeSort()]).run(module)
    assert str(module) == str(parse_module(text))


def sorts_of(module: Any) -> list[Any]:
    return operations(module, {"stablehlo.sort"})


def test_sixteen_keys() -> None:
    keys = [np.random.default_rng(n).integers(0, 2, 64).astype(np.int8) for n in range(16)]
    with Builder("many") as builder:
        operands = [builder.parameter(n, "s8[64]", f"x{n}") for n in range(16)]

        def before(*scalars: Value) -> Value:
            flag = scalars[-2] < scalars[-1]
            for n in range(28, -1, -2):
                flag = (scalars[n] < scalars[n + 1]) | (scalars[n].eq(scalars[n + 1]) & flag)
            return flag

        program = builder.build(tuple(leaves(ops.sort(operands, before, is_stable=True))))
    PassManager([DecomposeSort()]).run(program.module)
    order = np.lexsort(keys[::-1])
    for got, key in zip(interpret(program.module, *keys), keys, strict=True):
        np.testing.assert_array_equal(got, key[order])
