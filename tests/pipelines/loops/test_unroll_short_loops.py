"""unroll-short-loops: written out, a loop gives what it gave; others stay."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.loops.unroll_short_loops import UnrollShortLoops
from hloforge.runtime.reference.engines import reference

TEXT = """func.func @main(%x: tensor<5x7xui32>, %f: tensor<7xf32>, %n: tensor<i32>)
    -> (tensor<5x7xui32>, tensor<7xf32>, tensor<2xui32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %known = stablehlo.constant dense<TURNS> : tensor<i32>
  %a = stablehlo.constant dense<[13, 15]> : tensor<2xui32>
  %b = stablehlo.constant dense<[17, 29]> : tensor<2xui32>
  %last:5 = stablehlo.while(%i = %zero, %v = %x, %y = %f, %r = %a, %s = %b)
    : tensor<i32>, tensor<5x7xui32>, tensor<7xf32>, tensor<2xui32>, tensor<2xui32>
   cond {
    %more = stablehlo.compare LT, %i, BOUND : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %cut = stablehlo.slice %r [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %by = stablehlo.broadcast_in_dim %cut, dims = [0] : (tensor<1xui32>) -> tensor<5x7xui32>
    %moved = stablehlo.shift_left %v, %by : tensor<5x7xui32>
    %turn = stablehlo.convert %i : (tensor<i32>) -> tensor<ui32>
    %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<ui32>) -> tensor<5x7xui32>
    %sum = stablehlo.add %moved, %turns : tensor<5x7xui32>
    %new = stablehlo.xor %sum, %v : tensor<5x7xui32>
    %half = stablehlo.OPERATION
    stablehlo.return %next, %new, %half, %s, %r
      : tensor<i32>, tensor<5x7xui32>, tensor<7xf32>, tensor<2xui32>, tensor<2xui32>
  }
  return %last#1, %last#2, %last#3, %last#0 : tensor<5x7xui32>, tensor<7xf32>, tensor<2xui32>, tensor<i32>
}
"""
ELEMENTWISE = "tanh %y : tensor<7xf32>"
SORT = """sort"(%y) <{dimension = 0 : i64}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
    }) : (tensor<7xf32>) -> tensor<7xf32>"""


@pytest.mark.parametrize(
    ("turns", "bound", "operation", "loops"),
    [
        (1, "%known", ELEMENTWISE, 0),
        (5, "%known", ELEMENTWISE, 0),
        (8, "%known", ELEMENTWISE, 0),
        (9, "%known", ELEMENTWISE, 1),
        (5, "%n", ELEMENTWISE, 1),
        (5, "%known", SORT, 1),
        (0, "%known", ELEMENTWISE, 1),
    ],
)
def test_short_loops(turns: int, bound: str, operation: str, loops: int) -> None:
    text = TEXT.replace("TURNS", str(turns)).replace("BOUND", bound)
    text = text.replace(
        "stablehlo.OPERATION", f'"stablehlo.{operation}' if operation == SORT else f"stablehlo.{operation}"
    )
    program = hloforge.read(text)
    arguments = (
        np.random.default_rng(0).integers(0, 2**32, (5, 7)).astype(np.uint32),
        np.linspace(-2, 2, 7, dtype=np.float32),
        np.int32(turns),
    )
    expected = reference("interpreter", isolated=False).prepare(program)(*arguments)
    UnrollShortLoops().run(program.module)
    program.module.operation.verify()
    assert len(operations(program.module, ["stablehlo.while"])) == loops
    for found, other in zip(hloforge.compile(program).load()(*arguments), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), other, rtol=3e-7)
