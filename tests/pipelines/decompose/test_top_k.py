"""decompose-sort on the sort that CHLO makes of top_k: numpy's stable sort of the total order is the judge."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.sort import DecomposeSort
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from tests.engines import interpret, shared_reference


def lowered(dims: str, element: str, k: int, result: str) -> object:
    module = parse_module(f"""func.func @main(%x: tensor<{dims}x{element}>)
        -> (tensor<{result}x{element}>, tensor<{result}xi32>) {{
      %v, %i = chlo.top_k(%x, k={k}) : tensor<{dims}x{element}> -> (tensor<{result}x{element}>, tensor<{result}xi32>)
      return %v, %i : tensor<{result}x{element}>, tensor<{result}xi32> }}""")
    PassManager([NativePass("func.func(chlo-legalize-to-stablehlo)"), DecomposeSort()]).run(module)
    return module


@pytest.mark.parametrize("name", ["s8", "u8", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64"])
def test_ties_go_to_the_lower_index(name: str) -> None:
    row = element_type(name)
    low = 0 if row.kind.value == "unsigned" else -4
    x = np.random.default_rng(0).integers(low, 4, size=(2, 3, 40)).astype(row.dtype)
    values, indices = interpret(lowered("2x3x40", row.mlir, 7, "2x3x7"), x)
    order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., :7]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16], ids=["f32", "f64", "bf16"])
def test_special_values_stand_in_total_order(dtype: object) -> None:
    x = np.array([0.0, -np.nan, -0.0, np.inf, np.nan, -np.inf, 1.0, -1.0, 1e-40], np.float32).astype(dtype)
    # StableHLO's interpreter has no total order of floats.
    module = lowered("9", element_type(np.dtype(dtype)).mlir, 9, "9")
    values, indices = shared_reference("xla").prepare(hloforge.read(str(module)))(x)
    expected = [4, 3, 6, 8, 0, 2, 7, 5, 1]  # nan, inf, 1, subnormal, 0, -0, -1, -inf, -nan
    if not float(x[8]):
        expected = [4, 3, 6, 0, 8, 2, 7, 5, 1]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(np.signbit(values), np.signbit(x[expected]))


def test_the_least_integer_is_found_once() -> None:
    x = np.full(5, np.iinfo(np.int32).min, np.int32)
    values, indices = interpret(lowered("5", "i32", 5, "5"), x)
    np.testing.assert_array_equal(indices, range(5))
    np.testing.assert_array_equal(values, x)
