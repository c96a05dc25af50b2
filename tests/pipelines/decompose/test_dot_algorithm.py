"""decompose-dot-algorithm: the promised precision, by the StableHLO interpreter against float64."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.dot_algorithm import DecomposeDotAlgorithm
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret

RANDOM = np.random.default_rng(3)
A, B = RANDOM.normal(size=(4, 64)).astype(np.float32), RANDOM.normal(size=(64, 5)).astype(np.float32)
EXACT = A.astype(np.float64) @ B.astype(np.float64)


def lowered(precision: str, accumulation: str, operations: int) -> object:
    module = parse_module(f"""func.func @main(%a: tensor<4x64xf32>, %b: tensor<64x5xf32>) -> tensor<4x5xf32> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT],
        algorithm = <lhs_precision_type = {precision}, rhs_precision_type = {precision},
          accumulation_type = {accumulation}, lhs_component_count = 1, rhs_component_count = 1,
          num_primitive_operations = {operations}, allow_imprecise_accumulation = false>
        : (tensor<4x64xf32>, tensor<64x5xf32>) -> tensor<4x5xf32>
      return %0 : tensor<4x5xf32> }}""")
    PassManager([DecomposeDotAlgorithm()]).run(module)
    assert "algorithm" not in str(module)
    return module


@pytest.mark.parametrize(
    ("precision", "operations"), [("bf16", 1), ("bf16", 3), ("f8E5M2", 1), ("f16", 1), ("tf32", 1), ("f32", 1)]
)
def test_operands_keep_their_own_precision(precision: str, operations: int) -> None:
    accumulation = "f16" if precision == "f16" else "f32"
    (result,) = interpret(lowered(precision, accumulation, operations), A, B)
    np.testing.assert_allclose(result, EXACT, rtol=1e-5, atol=1e-5)


def test_the_accumulator_may_be_wider_than_the_result() -> None:
    assert "tensor<4x5xf64>" in str(lowered("f64", "f64", 1))
