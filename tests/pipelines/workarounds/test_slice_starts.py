"""legalize-slice-starts: slices and updates from starts of every type, beyond both ends."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import ops

TYPES = ("s8", "s16", "u8", "u16", "u32", "u64")


@pytest.mark.wide(2)
@pytest.mark.parametrize("start", [-20, -1, 3, 100])
def test_starts_of_every_type(start: int) -> None:
    x = np.arange(70, dtype=np.float32).reshape(10, 7)
    starts = [np.array(start).astype({"s": "i", "u": "u"}[t[0]] + str(int(t[1:]) // 8)) for t in TYPES]
    with hloforge.Builder("slices") as builder:
        array = builder.parameter(0, "f32[10,7]", "x")
        numbers = [builder.parameter(n, f"{t}[]", t) for n, t in enumerate(TYPES, 1)]
        part = ops.slice(array, [0, 0], [3, 2], [1, 1])
        made = [ops.dynamic_slice(array, [n, n], [4, 2]) for n in numbers]
        made += [ops.dynamic_update_slice(array, part, [n, n]) for n in numbers]
        program = builder.build(tuple(made))
    got = program.compile("cpu")(x, *starts)
    for result, want in zip(got, program.evaluate(x, *starts, engine="xla"), strict=True):
        np.testing.assert_array_equal(result, want)


def test_slices_and_updates_of_scalars() -> None:
    text = """func.func @main(%x: tensor<f32>, %y: tensor<f64>) -> (tensor<f32>, tensor<f64>) {
      %0 = "stablehlo.dynamic_slice"(%x) <{slice_sizes = array<i64>}> : (tensor<f32>) -> tensor<f32>
      %1 = "stablehlo.dynamic_update_slice"(%y, %y) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      return %0, %1 : tensor<f32>, tensor<f64> }"""
    assert hloforge.compile(text)(np.float32(3), np.float64(2)) == (3, 2)
