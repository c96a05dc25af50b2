"""Operations that StableHLO keeps for older programs: dot of vectors and matrices, broadcast, einsum of one array."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge

X = np.arange(12, dtype=np.float32).reshape(3, 4)
M, V = "tensor<3x4xf32>", "tensor<4xf32>"
BODIES = {
    "matrices": (f"stablehlo.dot %x, %y, precision = [HIGHEST, HIGHEST] : ({M}, tensor<4x3xf32>)", X @ X.T),
    "matrix and vector": (f"stablehlo.dot %x, %v : ({M}, {V})", X @ X[0]),
    "vectors": (f"stablehlo.dot %v, %v : ({V}, {V})", X[0] @ X[0]),
    "broadcast": (
        f'"stablehlo.broadcast"(%v) <{{broadcast_sizes = array<i64: 2, 3>}}> : ({V})',
        np.broadcast_to(X[0], (2, 3, 4)),
    ),
    "einsum of one": (f'"stablehlo.unary_einsum"(%x) <{{einsum_config = "ij->i"}}> : ({M})', X.sum(1)),
}


@pytest.mark.parametrize("name", BODIES)
def test_older_operations_have_code(name: str) -> None:
    body, expected = BODIES[name]
    result = f"tensor<{''.join(f'{size}x' for size in np.shape(expected))}f32>"
    text = f"""func.func @main(%x: {M}, %y: tensor<4x3xf32>, %v: {V}) -> {result} {{
      %r = {body} -> {result}
      return %r : {result} }}"""
    executable = hloforge.compile(text)
    assert executable.manifest.is_generated
    np.testing.assert_array_equal(executable(X, np.ascontiguousarray(X.T), X[0]), expected)
