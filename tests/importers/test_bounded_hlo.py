"""Arrays of bounded size in HLO: at sizes that are known now, at the call, and in each turn of a loop.

Expected are sums by numpy at those sizes: XLA's results of dynamic size are buffers up to the bound.
"""

from __future__ import annotations

import itertools

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


@pytest.mark.wide(2)
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
  ROOT a = s32[] dot(y, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""
    with pytest.raises(UnsupportedError, match="sizes of arrays do not fit each other") as caught:
        hloforge.compile(SUM + text)
    assert str(caught.value.location) == "<string>:12:8" and caught.value.hint


TWO = """ENTRY e {
  x = s32[4,2] parameter(0)
  y = s32[4,2] parameter(1)
  n = s32[] N
  m = s32[] M
  zero = s32[] constant(0)
  xn = s32[<=4,2] set-dimension-size(x, n), dimensions={0}
  ym = s32[<=4,2] set-dimension-size(y, m), dimensions={0}
  a = s32[<=4,2] subtract(ym, xn)
  ROOT r = s32[2] reduce(a, zero), dimensions={0}, to_apply=sum
}
"""


def test_arrays_of_two_sizes_have_the_smaller_one_and_one_row_is_repeated() -> None:
    x, y = np.arange(8, dtype=np.int32).reshape(4, 2), np.arange(10, 18, dtype=np.int32).reshape(4, 2)
    at_run = hloforge.compile(SUM + TWO.replace("N\n", "parameter(2)\n").replace("M\n", "parameter(3)\n")).load()
    for first, second in itertools.product(range(5), repeat=2):
        rows = max(first, second) if min(first, second) == 1 else min(first, second)
        parts = (np.resize(array[:n], (rows, 2)) if n == 1 else array[:rows] for array, n in ((y, second), (x, first)))
        expected = np.subtract(*parts).sum(0)
        np.testing.assert_array_equal(at_run(x, y, np.int32(first), np.int32(second)), expected)
        if (first, second) in [(1, 3), (3, 1), (2, 3), (0, 1)]:
            known = TWO.replace("N\n", f"constant({first})\n").replace("M\n", f"constant({second})\n")
            np.testing.assert_array_equal(hloforge.compile(SUM + known).load()(x, y), expected)


MERGED = """ENTRY e {
  x = s32[2,3,3] parameter(0)
  w = s32[18] parameter(1)
  n = s32[] N
  m = s32[] M
  zero = s32[] constant(0)
  xn = s32[2,<=3,3] set-dimension-size(x, n), dimensions={1}
  xm = s32[2,TYPE,<=3] set-dimension-size(xn, m), dimensions={2}
  RESHAPED
  weighted = s32[<=18] multiply(flat, w)
  ROOT r = s32[] reduce(weighted, zero), dimensions={0}, to_apply=sum
}
"""
RESHAPES = (
    "flat = s32[<=18] reshape(xm)",
    """neg = s32[2,TYPE,<=3] negate(xm)
  abs = s32[2,TYPE,<=3] negate(neg)
  flat = s32[<=18] reshape(abs)""",
)


@pytest.mark.parametrize("type_", ["<=3", "3"])
@pytest.mark.parametrize("reshaped", RESHAPES)
def test_dimensions_of_dynamic_size_are_merged_in_the_order_of_their_elements(reshaped: str, type_: str) -> None:
    """XLA keeps a size that was set before, whether or not the type says it."""
    x, w = np.arange(1, 19, dtype=np.int32).reshape(2, 3, 3), np.arange(3, 21, dtype=np.int32)
    text = SUM + MERGED.replace("RESHAPED", reshaped).replace("TYPE", type_)
    at_run = hloforge.compile(text.replace("N\n", "parameter(2)\n").replace("M\n", "parameter(3)\n")).load()
    for n, m in [(2, 2), (3, 1), (1, 3), (3, 3), (2, 3)]:
        part = x[:, :n, :m].ravel()
        expected = (part * w[: part.size]).sum()
        assert at_run(x, w, np.int32(n), np.int32(m)) == expected
    known = hloforge.compile(text.replace("N\n", "constant(2)\n").replace("M\n", "constant(2)\n")).load()
    part = x[:, :2, :2].ravel()
    assert known(x, w) == (part * w[:8]).sum()
