"""sums-in-vectors: an addition of zero stands between a product and its sum, where it changes no result."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.optimize.sums_in_vectors import SumsInVectors
from tests.engines import shared_reference

TEXT = """func.func @main(%x: tensor<6x8xf32>, %y: tensor<6x8xf32>) -> tensor<OUT> {
  %start = stablehlo.constant dense<START> : tensor<f32>
  %p = stablehlo.multiply %x, %y : tensor<6x8xf32>
  %r = stablehlo.SHAPE %p : (tensor<6x8xf32>) -> tensor<6x4x2xf32>
  %s = stablehlo.reduce(OF init: %start) applies stablehlo.COMBINER across dimensions = [DIM]
    : (tensor<OFTYPE>, tensor<f32>) -> tensor<OUT>
  return %s : tensor<OUT>
}
"""


def program(of: str = "%p", start: str = "0.0", combiner: str = "add") -> hloforge.Program:
    shaped = of == "%r"
    words = {
        "OFTYPE": "6x4x2xf32" if shaped else "6x8xf32",
        "OF": of,
        "START": start,
        "SHAPE": "reshape",
        "COMBINER": combiner,
        "DIM": "2" if shaped else "1",
        "OUT": "6x4xf32" if shaped else "6xf32",
    }
    text = TEXT
    for word, value in words.items():
        text = text.replace(word, value)
    return hloforge.read(text)


@pytest.mark.parametrize(
    ("of", "start", "combiner", "additions"),
    [
        ("%p", "0.0", "add", 1),
        ("%r", "0.0", "add", 1),
        ("%x", "0.0", "add", 0),
        ("%p", "-0.0", "add", 0),  # the sum of -0 and -0 stays -0
        ("%p", "1.0", "add", 0),
        ("%p", "0.0", "maximum", 0),
    ],
)
def test_zero_is_added_to_products_that_are_summed_from_zero(
    of: str, start: str, combiner: str, additions: int
) -> None:
    module = program(of, start, combiner).module
    SumsInVectors().run(module)
    assert module.operation.verify()
    outside = [op for op in operations(module, ["stablehlo.add"]) if op.parent.name == "func.func"]
    assert len(outside) == additions


def test_sums_of_signed_zeros_infinities_and_nan_stay() -> None:
    x = np.array([[-0.0] * 8, [0.0] * 8, [np.inf] * 8, [1e30] * 8, [np.nan] + [1.0] * 7, [*range(8)]], np.float32)
    y = np.array([[1.0] * 8, [-1.0] * 8, [2.0] * 8, [1e30] * 8, [1.0] * 8, [*range(8)]], np.float32)
    want = shared_reference("interpreter").prepare(program())(x, y)
    found = hloforge.compile(program(), cache=False)(x, y)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
