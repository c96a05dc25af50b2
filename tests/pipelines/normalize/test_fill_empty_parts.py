"""fill-empty-parts: slices and transforms without elements are 0, and nobody reads outside of the operand."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from tests.engines import shared_reference

ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
PROGRAM = """HloModule m
ENTRY e {{
  x = f32[{rows},2] parameter(0)
  i = s32[3] parameter(1)
  ROOT g = f32[3,2] gather(x, i), {numbers}, slice_sizes={{0,2}}
}}"""


@pytest.mark.parametrize("rows", [0, 4])
def test_empty_slices_are_zeros_as_for_xla(rows: int) -> None:
    program = hloforge.read(PROGRAM.format(rows=rows, numbers=ROWS))
    inputs = np.ones((rows, 2), np.float32), np.array([0, 1, 2], np.int32)
    expected = shared_reference("xla").prepare(program)(*inputs)
    np.testing.assert_array_equal(hloforge.compile(program).load()(*inputs), expected)
    np.testing.assert_array_equal(expected, np.zeros((3, 2)))


@pytest.mark.parametrize("lengths", ["0", "1,0,1", "0,4"])
def test_transforms_of_length_0_are_zeros(lengths: str) -> None:
    """As XLA's evaluator has them in its tests: its CPU client leaves the buffer as it was."""
    dims = lengths.replace("0", "4")
    text = f"""HloModule m
ENTRY e {{
  x = c64[2,{dims}] parameter(0)
  ROOT r = c64[2,{dims}] fft(x), fft_type=FFT, fft_length={{{lengths}}}
}}"""
    x = np.ones([2, *map(int, dims.split(","))], np.complex64)
    np.testing.assert_array_equal(hloforge.compile(text).load()(x), np.zeros_like(x))
