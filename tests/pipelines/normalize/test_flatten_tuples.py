"""flatten-tuples: programs compute the same without tuples."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.flatten_tuples import FlattenTuples
from tests.engines import interpret

PAIR = "tuple<tensor<2xf32>, tuple<tensor<i32>>>"
# A tuple through two calls: x * 2 * 2 + 1, and the count 2.
PROGRAM = f"""
func.func @main(%x: tensor<2xf32> {{jax.arg_info = "x"}}, %n: tensor<i32>) -> {PAIR} {{
  %0 = stablehlo.tuple %n : tuple<tensor<i32>>
  %1 = stablehlo.tuple %x, %0 : {PAIR}
  %2 = call @step(%1) : ({PAIR}) -> {PAIR}
  %3 = call @step(%2) : ({PAIR}) -> {PAIR}
  %a = stablehlo.get_tuple_element %3[0] : ({PAIR}) -> tensor<2xf32>
  %t = stablehlo.get_tuple_element %3[1] : ({PAIR}) -> tuple<tensor<i32>>
  %one = stablehlo.constant dense<1.0> : tensor<2xf32>
  %s = stablehlo.add %a, %one : tensor<2xf32>
  %r = stablehlo.tuple %s, %t : {PAIR}
  return %r : {PAIR}
}}
func.func private @step(%t: {PAIR}) -> {PAIR} {{
  %a = stablehlo.get_tuple_element %t[0] : ({PAIR}) -> tensor<2xf32>
  %u = stablehlo.get_tuple_element %t[1] : ({PAIR}) -> tuple<tensor<i32>>
  %k = stablehlo.get_tuple_element %u[0] : (tuple<tensor<i32>>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.add %k, %one : tensor<i32>
  %d = stablehlo.add %a, %a : tensor<2xf32>
  %v = stablehlo.tuple %n : tuple<tensor<i32>>
  %r = stablehlo.tuple %d, %v : {PAIR}
  return %r : {PAIR}
}}
"""


def flattened(text: str) -> object:
    module = parse_module(text)
    PassManager([FlattenTuples()]).run(module)
    return module


def test_tuples_leave_functions_and_calls() -> None:
    module = flattened(PROGRAM)
    assert "tuple" not in str(module)
    assert 'jax.arg_info = "x"' in str(module)
    x, n = interpret(module, np.array([1, -2], np.float32), np.array(0, np.int32))
    np.testing.assert_array_equal(x, [5, -7])
    assert n == 2


def test_a_parameter_of_main_becomes_its_leaves() -> None:
    module = flattened(
        f"""func.func @main(%t: {PAIR}, %y: tensor<2xf32>) -> tensor<2xf32> {{
          %a = stablehlo.get_tuple_element %t[0] : ({PAIR}) -> tensor<2xf32>
          %s = stablehlo.subtract %a, %y : tensor<2xf32>
          return %s : tensor<2xf32> }}"""
    )
    arguments = np.array([5, 5], np.float32), np.array(0, np.int32), np.array([1, 2], np.float32)
    np.testing.assert_array_equal(interpret(module, *arguments)[0], [4, 3])


def test_a_custom_call_gives_its_leaves_and_takes_its_tuples() -> None:
    text = str(
        flattened(
            f"""func.func @main(%x: tensor<2xf32>) -> tensor<i32> {{
              %t = stablehlo.tuple %x : tuple<tensor<2xf32>>
              %r = stablehlo.custom_call @f(%t) : (tuple<tensor<2xf32>>) -> {PAIR}
              %u = stablehlo.get_tuple_element %r[1] : ({PAIR}) -> tuple<tensor<i32>>
              %k = stablehlo.get_tuple_element %u[0] : (tuple<tensor<i32>>) -> tensor<i32>
              return %k : tensor<i32> }}"""
        )
    )
    assert "@f(%0) : (tuple<tensor<2xf32>>) -> (tensor<2xf32>, tensor<i32>)" in text
    assert "get_tuple_element" not in text


def test_a_copy_of_a_tuple_is_its_leaves() -> None:
    program = read("""HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  n = s32[] parameter(1)
  inner = (s32[]) tuple(n)
  t = (f32[2], (s32[])) tuple(x, inner)
  c = (f32[2], (s32[])) copy(t)
  ROOT d = (f32[2], (s32[])) copy(c)
}""")
    PassManager([FlattenTuples()]).run(program.module)
    assert "tuple" not in str(program.module.body) and "copy" not in str(program.module.body)
    x, n = interpret(program.module, np.array([1, -2], np.float32), np.array(3, np.int32))
    np.testing.assert_array_equal(x, [1, -2])
    assert n == 3
