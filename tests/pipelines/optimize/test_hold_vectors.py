"""hold-vectors: costly vectors that many rows share stand behind a barrier, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.optimize.hold_vectors import HoldVectors

TEXT = """func.func @main(%x: tensor<ROWSxCOLUMNSxf32>, %v: tensor<VECTORxf32>) -> tensor<ROWSxCOLUMNSxf32> {
  %f = stablehlo.FUNCTION %v : tensor<VECTORxf32>
  %d = stablehlo.add %f, %f : tensor<VECTORxf32>
  %b = stablehlo.broadcast_in_dim %d, dims = [DIMENSION] : (tensor<VECTORxf32>) -> tensor<ROWSxCOLUMNSxf32>
  %y = stablehlo.multiply %x, %b : tensor<ROWSxCOLUMNSxf32>
  return %y : tensor<ROWSxCOLUMNSxf32>
}
"""


def program(function: str, rows: int, columns: int, dimension: int = 1) -> hloforge.Program:
    words = {
        "FUNCTION": function,
        "ROWS": str(rows),
        "COLUMNS": str(columns),
        "VECTOR": str(columns if dimension else rows),
        "DIMENSION": str(dimension),
    }
    text = TEXT
    for word, value in words.items():
        text = text.replace(word, value)
    return hloforge.read(text)


@pytest.mark.parametrize(
    ("function", "rows", "columns", "dimension", "barriers"),
    [
        ("rsqrt", 4096, 32, 1, 1),
        ("negate", 4096, 32, 1, 0),  # as cheap as reading it
        ("rsqrt", 32, 4096, 1, 0),  # few rows
        ("rsqrt", 1024, 32, 1, 0),  # a small result
        ("rsqrt", 4096, 32, 0, 0),  # one number a row, which is computed once for it
    ],
)
def test_barriers_stand_where_rows_share_what_is_costly(
    function: str, rows: int, columns: int, dimension: int, barriers: int
) -> None:
    module = program(function, rows, columns, dimension).module
    HoldVectors().run(module)
    assert module.operation.verify()
    assert len(operations(module, ["stablehlo.optimization_barrier"])) == barriers


def test_the_numbers_stay() -> None:
    random = np.random.default_rng(0)
    x, v = random.standard_normal((4096, 32)).astype(np.float32), random.uniform(1, 2, 32).astype(np.float32)
    found = hloforge.compile(program("rsqrt", 4096, 32), cache=False)(x, v)
    np.testing.assert_allclose(found, x * (2 / np.sqrt(v)), rtol=1e-6)
