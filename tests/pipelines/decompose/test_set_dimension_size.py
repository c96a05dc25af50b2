"""decompose-set-dimension-size, through IREE: the size is known at run time, and numpy cuts alike."""

from __future__ import annotations

import numpy as np

from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program

PROGRAM = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4,2]{1,0} parameter(0)
  n = s32[] parameter(1)
  cut = f32[<=4,2]{1,0} set-dimension-size(x, n), dimensions={0}
  zero = f32[] constant(0)
  size = s32[] get-dimension-size(cut), dimensions={0}
  sums = f32[2]{0} reduce(cut, zero), dimensions={0}, to_apply=add
  ROOT all = (f32[2]{0}, s32[], f32[<=4,2]{1,0}) tuple(sums, size, cut)
}"""


def test_elements_beyond_the_size_are_cut_off() -> None:
    session = compile_program(read(PROGRAM)).load()
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    for count in (3, 4, 1):
        sums, size, cut = session(x, np.array(count, np.int32))
        np.testing.assert_array_equal(sums, x[:count].sum(0))
        assert size == count
        np.testing.assert_array_equal(cut, x[:count])
