"""slice-operands: parts of elementwise results are computed from parts, where nothing is computed twice or in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.optimize.slice_operands import SliceOperands
from tests.engines import shared_reference

TEXT = """func.func @main(%x: tensor<4x12xf32>, %y: tensor<4x12xf32>, %b: tensor<1x12xf32>) -> (RESULTS) {
  %bias = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<1x12xf32>) -> tensor<4x12xf32>
  %sum = stablehlo.add %x, %y : tensor<4x12xf32>
  %gates = stablehlo.add %sum, %bias : tensor<4x12xf32>
  %first = stablehlo.slice %gates [0:4, 0:6] : (tensor<4x12xf32>) -> tensor<4x6xf32>
  %second = stablehlo.slice %gates [1:4:2, FROM:12:2] : (tensor<4x12xf32>) -> tensor<2x3xf32>
  %i = stablehlo.logistic %first : tensor<4x6xf32>
  %f = stablehlo.tanh %second : tensor<2x3xf32>
  return RETURNED
}
"""
PARTS = "tensor<4x6xf32>, tensor<2x3xf32>"


@pytest.mark.parametrize(
    ("start", "results", "returned", "is_sliced"),
    [
        ("6", PARTS, f"%i, %f : {PARTS}", True),
        ("7", PARTS, f"%i, %f : {PARTS}", True),
        ("5", PARTS, f"%i, %f : {PARTS}", False),  # the parts overlap
        ("6", f"{PARTS}, tensor<4x12xf32>", f"%i, %f, %gates : {PARTS}, tensor<4x12xf32>", False),  # read as a whole
    ],
)
def test_only_parts_are_computed(start: str, results: str, returned: str, is_sliced: bool) -> None:
    text = TEXT.replace("FROM", start).replace("RESULTS", results).replace("RETURNED", returned)
    program = hloforge.read(text.replace("5:12:2", "5:10:2"))
    sliced = program.clone()
    SliceOperands().run(sliced.module)
    assert sliced.module.operation.verify()
    assert (_largest(sliced, "stablehlo.add") < 48) is is_sliced
    arguments = [
        np.random.default_rng(1).standard_normal(dims).astype(np.float32) for dims in [(4, 12)] * 2 + [(1, 12)]
    ]
    interpreter = shared_reference("interpreter")
    expected = interpreter.prepare(program)(*arguments)
    for one, other in zip(interpreter.prepare(sliced)(*arguments), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(hloforge.compile(program)(*arguments), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def _largest(program: Any, name: str) -> int:
    return max(int(np.prod(op.results[0].type.shape)) for op in operations(program.module, [name]))


def test_parts_of_repetitions_without_elements_have_none() -> None:
    text = """func.func @main(%x: tensor<0x2xf32>) -> tensor<3x0x1xf32> {
      %all = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<0x2xf32>) -> tensor<4x0x2xf32>
      %part = stablehlo.slice %all [0:3, 0:0, 1:2] : (tensor<4x0x2xf32>) -> tensor<3x0x1xf32>
      return %part : tensor<3x0x1xf32>
    }"""
    sliced = hloforge.read(text)
    SliceOperands().run(sliced.module)
    assert sliced.module.operation.verify()
    assert not operations(sliced.module, {"stablehlo.broadcast_in_dim"})[0].operands[0].type.shape[0]
