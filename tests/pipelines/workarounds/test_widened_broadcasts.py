"""legalize-widened-broadcasts: two broadcasts of one reshape of narrow floats, both converted, compile and agree."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Value, ops


def turned(count: Value, x: Value, first: Value, second: Value) -> tuple[Value, Value]:
    """Rotary embeddings in a loop, of heads of two numbers: the factors are read before it, and reshaped in it."""
    factors = ops.convert_element_type(ops.sin(x), first.element_type)

    def turn(number: Value, *arrays: Value) -> list[Value]:
        found = []
        for array in arrays:
            flat = ops.reshape(factors, [2, 8, 4])
            spread = ops.broadcast_in_dim(flat, array.dims, [0, 1, 3])
            wide = ops.mul(ops.convert_element_type(array, "f32"), ops.convert_element_type(spread, "f32"))
            found.append(ops.convert_element_type(wide, array.element_type))
        return [ops.add(number, 1), *found]

    start = ops.constant(0, "s32")
    results = ops.while_(lambda number, *_: ops.lt(number, count), turn, [start, first, second])
    return results[1], results[2]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_agrees(dtype: Any) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2, 8, 1, 4)).astype(np.float32)
    arrays = [draw.normal(size=(2, 8, heads, 4)).astype(dtype) for heads in (4, 2)]
    name = "f16" if dtype == np.float16 else "bf16"
    shapes = ["s32[]", "f32[2,8,1,4]", *(f"{name}[2,8,{heads},4]" for heads in (4, 2))]
    with hloforge.Builder("turned") as builder:
        program = builder.build(turned(*(builder.parameter(number, text) for number, text in enumerate(shapes))))
    found = hloforge.compile(program).load()(np.int32(3), x, *arrays)
    factors = np.sin(x).astype(dtype).astype(np.float32)
    for got, array in zip(found, arrays, strict=True):
        want = array
        for _ in range(3):
            want = (want.astype(np.float32) * factors).astype(dtype)
        np.testing.assert_allclose(np.asarray(got).astype(float), want.astype(float), rtol=2e-2, atol=1e-6)
