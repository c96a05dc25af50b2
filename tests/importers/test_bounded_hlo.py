"""Arrays of bounded size in HLO: at sizes that are known now, at the call, and in each turn of a loop.

Expected are sums by numpy at those sizes: XLA's results of dynamic size are buffers up to the bound.
"""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import UnsupportedError

SUM = """HloModule m
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b) }
"""
X = np.arange(1, 25, dtype=np.int32).reshape(4, 3, 2)
GATHER = """ENTRY e {
  x = s32[4,3,2] parameter(0)
  n = s32[] SIZE
  zero = s32[] constant(0)
  y = s32[4,<=3,2] set-dimension-size(x, n), dimensions={1}
  i = s32[2] constant({3, 1})
  g = s32[2,<=3,2] gather(y, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,3,2}
  ROOT r = s32[2,2] reduce(g, zero), dimensions={1}, to_apply=sum
}
"""


@pytest.mark.parametrize("size", range(4))
def test_a_gather_takes_a_bounded_dimension_whole(size: int) -> None:
    expected = X[[3, 1], :size].sum(1)
    known = hloforge.compile(SUM + GATHER.replace("SIZE", f"constant({size})")).load()
    np.testing.assert_array_equal(known(X), expected)
    session = hloforge.compile(SUM + GATHER.replace("SIZE", "parameter(1)")).load()
    np.testing.assert_array_equal(session(X, np.int32(size)), expected)


LOOP = """body {
  p = (s32[<=6]) parameter(0)
  x = s32[<=6] get-tuple-element(p), index=0
  n = s32[] get-dimension-size(x), dimensions={0}
  step = s32[] constant(STEP)
  m = s32[] add(n, step)
  y = s32[<=6] set-dimension-size(x, m), dimensions={0}
  v = s32[1] reshape(n)
  z = s32[<=6] dynamic-update-slice(y, v, n)
  ROOT t = (s32[<=6]) tuple(RESULT)
}
condition {
  p = (s32[<=6]) parameter(0)
  x = s32[<=6] get-tuple-element(p), index=0
  n = s32[] get-dimension-size(x), dimensions={0}
  last = s32[] constant(LAST)
  ROOT c = pred[] compare(n, last), direction=NE
}
ENTRY e {
  x = s32[6] parameter(0)
  n = s32[] constant(FIRST)
  zero = s32[] constant(0)
  y = s32[<=6] set-dimension-size(x, n), dimensions={0}
  s = (s32[<=6]) tuple(y)
  w = (s32[<=6]) while(s), condition=condition, body=body
  r = s32[<=6] get-tuple-element(w), index=0
  ROOT t = s32[] reduce(r, zero), dimensions={0}, to_apply=sum
}
"""


def loop(first: int, step: int, last: int, result: str) -> object:
    text = LOOP.replace("FIRST", str(first)).replace("STEP", str(step)).replace("LAST", str(last))
    return hloforge.compile(SUM + text.replace("RESULT", result)).load()


@pytest.mark.parametrize(("first", "last"), [(1, 5), (2, 6), (3, 3)])
def test_an_array_grows_in_a_loop(first: int, last: int) -> None:
    x = np.array([10, 20, 30, 40, 50, 60], np.int32)
    assert loop(first, 1, last, "z")(x) == x[:first].sum() + sum(range(first, last))


@pytest.mark.parametrize(("first", "last"), [(6, 1), (4, 0)])
def test_an_array_shrinks_in_a_loop(first: int, last: int) -> None:
    x = np.array([10, 20, 30, 40, 50, 60], np.int32)
    assert loop(first, -1, last, "y")(x) == x[:last].sum()


AGAIN = """ENTRY e {
  x = s32[6] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  zero = s32[] constant(0)
  y = s32[<=6] set-dimension-size(x, n), dimensions={0}
  z = s32[<=6] set-dimension-size(y, m), dimensions={0}
  ROOT t = s32[] reduce(z, zero), dimensions={0}, to_apply=sum
}
"""


@pytest.mark.parametrize(("first", "second"), [(2, 5), (5, 2), (0, 6), (3, 3)])
def test_a_size_that_is_set_again_keeps_the_elements(first: int, second: int) -> None:
    x = np.array([10, 20, 30, 40, 50, 60], np.int32)
    assert hloforge.compile(SUM + AGAIN).load()(x, np.int32(first), np.int32(second)) == x[:second].sum()


def test_sizes_that_do_not_fit_each_other_are_refused_at_the_line() -> None:
    text = """ENTRY e {
  x = s32[6] parameter(0)
  n = s32[] constant(2)
  m = s32[] constant(3)
  zero = s32[] constant(0)
  y = s32[<=6] set-dimension-size(x, n), dimensions={0}
  z = s32[<=6] set-dimension-size(x, m), dimensions={0}
  a = s32[<=6] add(y, z)
  ROOT t = s32[] reduce(a, zero), dimensions={0}, to_apply=sum
}
"""
    with pytest.raises(UnsupportedError, match="sizes of arrays do not fit each other") as caught:
        hloforge.compile(SUM + text)
    assert str(caught.value.location) == "<string>:12:3" and caught.value.hint
