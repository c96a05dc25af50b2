"""unroll-loops: eight turns at once give what eight turns one by one give."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.loops.unroll_loops import UnrollLoops
from tests.engines import shared_reference

TEXT = """func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %rows: tensor<40x8xf32>, %n: tensor<i32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<40x8xf32>, tensor<i32>) {
  %start = stablehlo.constant dense<FIRST> : tensor<i32>
  %known = stablehlo.constant dense<LIMIT> : tensor<i32>
  %last:4 = stablehlo.while(%i = %start, %v = %x, %old = %w, %all = %rows)
    : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<40x8xf32>
   cond {
    %more = stablehlo.compare LT, %i, BOUND : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %step = stablehlo.constant dense<STEP> : tensor<i32>
    %next = stablehlo.add %i, %step : tensor<i32>
    %row = stablehlo.dynamic_slice %all, %next, %zero, sizes = [1, 8]
      : (tensor<40x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %spread = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<8x8xf32>
    %p = stablehlo.PRODUCT
    %sum = stablehlo.subtract %p, %spread : tensor<8x8xf32>
    %new = stablehlo.tanh %sum : tensor<8x8xf32>
    %part = stablehlo.slice %new [3:4, 0:8] : (tensor<8x8xf32>) -> tensor<1x8xf32>
    %updated = stablehlo.dynamic_update_slice %all, %part, %i, %zero
      : (tensor<40x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<40x8xf32>
    stablehlo.return %next, %new, %v, %updated
      : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<40x8xf32>
  }
  return %last#1, %last#2, %last#3, %last#0 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<40x8xf32>, tensor<i32>
}
"""
PRODUCT = """dot_general %v, %old, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"""
SUM = "add %v, %old : tensor<8x8xf32>"


@pytest.fixture(autouse=True)
def without_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small a loop would become one dispatch, where a turn costs nothing."""
    monkeypatch.setattr("hloforge.pipelines.loops.unroll_loops.gains_by_fusion", lambda *_: False)
    monkeypatch.setattr("hloforge.pipelines.loops.fuse_loops.gains_by_fusion", lambda *_: False)


@pytest.mark.parametrize(
    ("first", "limit", "step", "bound", "product", "times"),
    [
        (0, 32, 1, "%known", PRODUCT, 8),
        (2, 38, 3, "%known", PRODUCT, 6),  # twelve turns
        (0, 35, 1, "%known", PRODUCT, 7),
        (0, 37, 1, "%known", PRODUCT, 1),  # a prime number of turns
        (0, 32, 3, "%known", PRODUCT, 1),  # the last one goes beyond the limit
        (32, 32, 1, "%known", PRODUCT, 1),
        (0, 32, 1, "%n", PRODUCT, 1),
        (0, 32, 1, "%known", SUM, 1),
    ],
)
def test_turns_at_once(first: int, limit: int, step: int, bound: str, product: str, times: int) -> None:
    text = TEXT
    for name, value in {"FIRST": first, "LIMIT": limit, "STEP": step, "BOUND": bound, "PRODUCT": product}.items():
        text = text.replace(name, str(value))
    program = hloforge.read(text)
    unrolled = program.clone()
    UnrollLoops().run(unrolled.module)
    assert unrolled.module.operation.verify()
    assert len(operations(unrolled.module, ["stablehlo.tanh"])) == times
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(dims).astype(np.float32) / 8 for dims in ((8, 8), (8, 8), (40, 8))]
    interpreter = shared_reference("interpreter")
    expected = interpreter.prepare(program)(*arrays, np.int32(16))
    found = interpreter.prepare(unrolled)(*arrays, np.int32(16))
    compiled = hloforge.compile(program, cache=False)(*arrays, np.int32(16)) if times > 6 else expected
    for one, two, other in zip(found, compiled, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(two, other, rtol=1e-4, atol=1e-5)
