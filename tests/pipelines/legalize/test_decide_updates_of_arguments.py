"""decide-updates: which arguments are copied."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.legalize.decide_updates import DecideUpdates
from tests.engines import interpret

UPDATE = """%r = stablehlo.dynamic_update_slice %{0}, %u, %i
  : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>"""
LOOP = """%r, %k = stablehlo.while(%y = %x, %n = %i) : tensor<4xf32>, tensor<i32>
  cond { %c = stablehlo.constant dense<3> : tensor<i32>
         %p = stablehlo.compare LT, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
         stablehlo.return %p : tensor<i1> }
  do { %one = stablehlo.constant dense<1> : tensor<i32> %m = stablehlo.add %n, %one : tensor<i32>
       %z = stablehlo.dynamic_update_slice %y, %u, %n : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
       stablehlo.return %z, %m : tensor<4xf32>, tensor<i32> }"""
SORT = """%r = "stablehlo.sort"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1> }) : (tensor<4xf32>) -> tensor<4xf32>"""


def lowered(body: str, attributes: str = "") -> object:
    module = parse_module(f"""module {{
      func.func @main(%x: tensor<4xf32> {attributes}, %u: tensor<1xf32>, %i: tensor<i32>) -> tensor<4xf32> {{
        {body} return %r : tensor<4xf32> }} }}""")
    PassManager([DecideUpdates(), NativePass("canonicalize,cse")]).run(module)
    return module


@pytest.mark.parametrize(
    "body",
    [
        UPDATE.format("x"),
        "%y = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<4x1xf32>"
        " %z = stablehlo.reshape %y : (tensor<4x1xf32>) -> tensor<4xf32>" + UPDATE.format("z"),
        LOOP,
        SORT,
    ],
)
def test_an_argument_that_is_written_in_place_is_copied(body: str) -> None:
    module = lowered(body)
    assert str(module).count("stablehlo.select") == 1
    x = np.array([4, 3, 2, 1], np.float32)
    (result,) = interpret(module, x, np.array([9], np.float32), np.int32(2))
    np.testing.assert_array_equal(result, np.sort(x) if "sort" in body else [4, 3, 9, 1])


def test_a_computed_value_needs_no_copy() -> None:
    assert "select" not in str(lowered("%y = stablehlo.add %x, %x : tensor<4xf32>" + UPDATE.format("y")))


def test_a_donated_argument_is_not_copied() -> None:
    assert "select" not in str(lowered(UPDATE.format("x"), "{tf.aliasing_output = 0 : i32}"))


def test_an_argument_that_is_only_read_is_not_copied() -> None:
    assert "select" not in str(lowered("%r = stablehlo.add %x, %x : tensor<4xf32>"))


def test_arguments_that_iree_finds_behind_operations_that_change_nothing() -> None:
    """What is folded to an argument only by IREE itself."""
    with hloforge.Builder("folded") as builder:
        x = builder.parameter(0, "s32[6,4]", "x")
        zero = ops.constant(0, "s32")
        row = ops.constant([[7, 7, 7, 7]], "s32")
        same = [
            ops.mul(x, 1),
            ops.max(x, x),
            ops.select(ops.eq(x, x), x, x),
            ops.add(x, 0),
            ops.slice(x, [0, 0], [6, 4]),
        ]
        updated = [ops.dynamic_update_slice(value, row, [zero, zero]) for value in same]
        program = builder.build((*same, *updated))
    array = np.arange(24, dtype=np.int32).reshape(6, 4)
    before = array.copy()
    results = program.compile("cpu")(array)
    want = before.copy()
    want[0] = 7
    np.testing.assert_array_equal(array, before)
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, before if number < 5 else want)


def test_complex_constants_are_no_obstacle() -> None:
    with hloforge.Builder("complex") as builder:
        x = builder.parameter(0, "c64[4]", "x")
        turned = ops.mul(x, 1j)
        same = ops.mul(x, 1)
        start = ops.constant(0, "s32")
        program = builder.build((turned, same, ops.dynamic_update_slice(same, ops.slice(turned, [1], [2]), [start])))
    array = np.array([1 + 2j, 3, 4j, -1], np.complex64)
    before = array.copy()
    turned, same, updated = program.compile("cpu")(array)
    np.testing.assert_array_equal(turned, before * np.complex64(1j))
    np.testing.assert_array_equal(same, before)
    np.testing.assert_array_equal(updated, [3j, 3, 4j, -1])
    np.testing.assert_array_equal(array, before)


def test_a_complex_scalar_is_scattered_into() -> None:
    text = """func.func @main(%x: tensor<complex<f64>>, %i: tensor<0xi32>) -> tensor<complex<f64>> {
      %r = "stablehlo.scatter"(%x, %i, %x) <{scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = 0>}> ({
        ^bb0(%a: tensor<complex<f64>>, %b: tensor<complex<f64>>):
          %0 = stablehlo.add %a, %b : tensor<complex<f64>>
          stablehlo.return %0 : tensor<complex<f64>>
      }) : (tensor<complex<f64>>, tensor<0xi32>, tensor<complex<f64>>) -> tensor<complex<f64>>
      return %r : tensor<complex<f64>> }"""
    x = np.array(3 - 2j)
    assert hloforge.compile(text)(x, np.zeros(0, np.int32)) == 6 - 4j
    assert x == 3 - 2j
