"""Rows and malformed uses of sorting, and of the largest elements."""

from __future__ import annotations

import numpy as np

from hloforge import Builder, Computation, Value
from hloforge.dialect import ops
from hloforge.dialect.op import ARRAY, COMPLEX, FLOAT, INTEGER
from tests.operations.row import Malformed, Row, moderate, varying

F32 = frozenset({"f32"})
S32 = frozenset({"s32"})
SORTED = ARRAY - COMPLEX - {"s2", "s4", "u2", "u4"}
# XLA's CPU client has no TopK of types of less than a byte.
TOPPED = FLOAT - {"f4e2m1fn"}
SUB_BYTE = "XLA's CPU client corrupts its memory when it sorts integers of less than a byte"
TOTAL_ORDER = "StableHLO's interpreter compares without total order, so that a NaN leaves no order at all"
# Keys with equal neighbours, and the places that they come from.
KEYS = np.array([[3, 1, 3, 1, 2, 1, 3, 2], [0, 0, 1, 1, 0, 1, 0, 1]], np.int32)
PLACES = np.arange(16, dtype=np.int32).reshape(2, 8)


def _later_first() -> Computation:
    with Builder("later_first") as builder:
        left, right = builder.parameter(0, "s32[]"), builder.parameter(1, "s32[]")
        return builder.build(ops.gt(left, right))


ROWS = (
    Row("Sort", lambda x: ops.sort(x), (moderate(3, 37),), on=SORTED, reason=SUB_BYTE),
    Row("Sort", lambda x: ops.sort(x, dimension=0), (moderate(37, 3),), "dimension", on=SORTED, reason=SUB_BYTE),
    Row("Sort", lambda x: ops.sort(x, ops.gt), (varying(40),), "descending", on=SORTED & INTEGER, reason=SUB_BYTE),
    Row("Sort", lambda x: ops.sort(x), (varying(40),), "total-order", on=FLOAT, judge="xla", reason=TOTAL_ORDER),
    Row("Sort", lambda x: ops.sort(x, _later_first()), (varying(9),), "program", on=S32),
    Row(
        "Sort",
        lambda x: ops.sort(x, lambda a, b: ops.real(a) < ops.real(b)),
        (moderate(9),),
        "complex",
        on=COMPLEX,
    ),
    Row(
        "Sort",
        lambda keys, places: ops.sort([keys, places], is_stable=True),
        (KEYS, PLACES),
        "stable",
        on=S32,
        expected=(
            [[1, 1, 1, 2, 2, 3, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]],
            [[1, 3, 5, 4, 7, 0, 2, 6], [8, 9, 12, 14, 10, 11, 13, 15]],
        ),
    ),
    Row(
        "Sort",
        lambda keys, places: ops.sort([keys, places], lambda a, b, i, j: (a > b) | (a.eq(b) & (i > j))),
        (KEYS, PLACES),
        "second-key",
        on=S32,
    ),
    Row(
        "Sort",
        lambda a, b, c: ops.sort([a, b, c], lambda left, right, *_: left < right),
        (np.array([3, 1], np.int32), np.array([42, 50], np.int32), np.array([-3.0, 1.1], np.float32)),
        "three",
        on=S32,
        expected=([1, 3], [50, 42], [1.1, -3.0]),
    ),
    Row("TopK", lambda x: ops.top_k(x, 4), (moderate(3, 37),)),
    Row("TopK", lambda x: ops.top_k(x, 4, largest=False), (moderate(3, 37),), "smallest"),
    Row(
        "TopK",
        lambda x: ops.top_k(x, 9),
        (moderate(2, 2, 9),),
        "all",
        on=ARRAY - COMPLEX - {"f4e2m1fn"},
        reason="no engine orders zeros of 4 bits: tests/pipelines/legalize/test_narrow_floats.py does",
    ),
    Row("TopK", lambda x: ops.top_k(x, 9), (varying(40),), "total-order", on=TOPPED, judge="xla", reason=TOTAL_ORDER),
    Row(
        "TopK",
        lambda x: ops.top_k(x, 9, largest=False),
        (varying(40),),
        "smallest-total-order",
        on=TOPPED,
        judge="xla",
        reason=TOTAL_ORDER,
    ),
    Row(
        "TopK",
        lambda x: ops.top_k(x, 3),
        (np.array([[1, 5, 3, 5], [7, 7, 7, 7]], np.float32),),
        "ties",
        on=F32,
        expected=([[5, 5, 3], [7, 7, 7]], [[1, 3, 2], [0, 1, 2]]),
    ),
    Row(
        "TopK",
        lambda x: ops.top_k(x, 3, largest=False),
        (np.array([[1, 5, 1, 5], [7, 7, 7, 7]], np.float32),),
        "smallest-ties",
        on=F32,
        expected=([[1, 1, 5], [7, 7, 7]], [[0, 2, 1], [0, 1, 2]]),
    ),
)

MALFORMED = (
    Malformed("Sort", lambda p: ops.sort([]), "at least one operand"),
    Malformed("Sort", lambda p: ops.sort(p("f32[2]"), 1), "a function of Values or a program, not 1"),  # type: ignore[arg-type]
    Malformed("Sort", lambda p: ops.sort([p("f32[2]"), p("f32[3]")]), "equal dimensions"),
    Malformed("Sort", lambda p: ops.sort(p("f32[2]"), ops.lt, 1), "dimension 1 is out of range"),
    Malformed("Sort", lambda p: ops.sort(p("f32[]")), "dimension -1 is out of range"),
    Malformed("Sort", lambda p: ops.sort(p("c64[2]")), "no order"),
    Malformed("Sort", lambda p: ops.sort([p("f32[2]"), p("s32[2]")], ops.lt), "is applied to"),
    Malformed("Sort", lambda p: ops.sort(p("f32[2]"), ops.sub), "(pred[]) is expected"),
    Malformed("Sort", lambda p: ops.sort(p("f32[2]"), _later_first()), "takes (s32[], s32[])"),
    Malformed("Sort", lambda p: _sorted_around(p("f32[2]"), p("f32[]")), "from around it"),
    Malformed("TopK", lambda p: ops.top_k(p("f32[]"), 1), "not the scalar"),
    Malformed("TopK", lambda p: ops.top_k(p("f32[4,3]"), 4), "has size 3"),
    Malformed("TopK", lambda p: ops.top_k(p("f32[3]"), -1), "k=-1 is out of range"),
    Malformed("TopK", lambda p: ops.top_k(p("c64[3]"), 1), "not c64"),
)


def _sorted_around(x: Value, middle: Value) -> Value:
    return ops.sort(x, lambda a, b: ops.abs(a - middle) < ops.abs(b - middle))
