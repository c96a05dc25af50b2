"""hoist-products: what is the same in every turn is computed once, and nothing else moves."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.loops.hoist_products import HoistProducts
from tests.engines import shared_reference

TEXT = """func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %end: tensor<i32>) -> tensor<8x8xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %last:3 = stablehlo.while(%i = %start, %v = %x, %k = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
   cond {
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %two = stablehlo.constant dense<2.0> : tensor<8x8xf32>
    %twice = stablehlo.multiply LEFT, %two : tensor<8x8xf32>
    %p = stablehlo.dot_general %twice, %x, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %sum = stablehlo.add %v, %p : tensor<8x8xf32>
    stablehlo.return %next, %sum, RETURNED : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %last#1 : tensor<8x8xf32>
}
"""


def program(left: str, returned: str) -> hloforge.Program:
    return hloforge.read(TEXT.replace("LEFT", left).replace("RETURNED", returned))


def in_loops(module: object) -> int:
    loops = operations(module, ["stablehlo.while"])
    return sum(len(operations(loop, ["stablehlo.dot_general"])) for loop in loops)


@pytest.mark.parametrize(
    ("left", "returned", "left_inside"),
    [
        ("%k", "%k", 0),  # a carry that comes back unchanged
        ("%w", "%k", 0),  # from outside
        ("%k", "%sum", 1),  # another carry takes its place
        ("%v", "%k", 1),
    ],
)
def test_only_products_of_what_stays_the_same_move(left: str, returned: str, left_inside: int) -> None:
    read = program(left, returned)
    moved = read.clone()
    HoistProducts().run(moved.module)
    assert moved.module.operation.verify()
    assert in_loops(moved.module) == left_inside
    x, w = np.random.default_rng(1).standard_normal((2, 8, 8)).astype(np.float32) / 8
    interpreter = shared_reference("interpreter")
    for turns in (0, 3):
        arguments = (x, w, np.array(turns, np.int32))
        want = interpreter.prepare(read)(*arguments)
        np.testing.assert_allclose(interpreter.prepare(moved)(*arguments), want, rtol=1e-6)
        if turns:
            np.testing.assert_allclose(hloforge.compile(read)(*arguments), want, rtol=1e-5, atol=1e-6)


def test_products_leave_nested_loops_as_far_as_they_can() -> None:
    text = """func.func @main(%x: tensor<4x4xf32>, %c: tensor<i1>) -> tensor<4x4xf32> {
      %outer:2 = stablehlo.while(%go = %c, %v = %x) : tensor<i1>, tensor<4x4xf32>
       cond { stablehlo.return %go : tensor<i1> } do {
        %inner:2 = stablehlo.while(%more = %go, %u = %v) : tensor<i1>, tensor<4x4xf32>
         cond { stablehlo.return %more : tensor<i1> } do {
          %stop = stablehlo.constant dense<false> : tensor<i1>
          %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
            : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %b = stablehlo.dot_general %v, %x, contracting_dims = [1] x [0]
            : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %s = stablehlo.add %a, %b : tensor<4x4xf32>
          %t = stablehlo.add %s, %u : tensor<4x4xf32>
          stablehlo.return %stop, %t : tensor<i1>, tensor<4x4xf32>
        }
        stablehlo.return %inner#0, %inner#1 : tensor<i1>, tensor<4x4xf32>
      }
      return %outer#1 : tensor<4x4xf32>
    }"""
    module = hloforge.read(text).module
    HoistProducts().run(module)
    inner, outer = operations(module, ["stablehlo.while"])
    assert len(operations(inner, ["stablehlo.dot_general"])) == 0
    assert len(operations(outer, ["stablehlo.dot_general"])) == 1  # of %v, which the outer loop carries
