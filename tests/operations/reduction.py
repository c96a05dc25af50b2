"""Rows and malformed uses of the reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge import Builder, Computation, Value
from hloforge.dialect import ops
from hloforge.dialect.op import ARRAY, COMPLEX, INTEGER, PRED
from tests.operations.row import Malformed, Row, moderate, varying

F32 = frozenset({"f32"})
SUMMED = frozenset({"s32", "u32", "s64", "u64", "f32", "f64", "c64", "c128"})
ORDERED = ARRAY - COMPLEX
# What is left where XLA's converter folds the operation: the tuple of results.
FOLDED = "tuple"

# The arrays of the text's figures: 2 x 3, and 4 x 2 x 3 with 1 .. 6 in each of four layers.
MATRIX = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
LAYERS = np.broadcast_to(MATRIX, (4, 2, 3)).copy()
# The text's example of windows, whose sums show which elements were in each.
DIGITS = np.array([10000, 1000, 100, 10, 1], np.float32)
# Figures of SelectAndScatter: windows of 2 x 3 that do not overlap, then of 2 x 3 that move by 2.
POOLED = np.array(
    [[7, 2, 5, 3, 10, 2], [3, 8, 9, 3, 4, 2], [1, 5, 7, 5, 6, 1], [0, 6, 2, 7, 2, 8]],
    np.float32,
)
OVERLAPPING = np.array([[7, 2, 5, 3, 8], [3, 8, 9, 3, 4], [1, 5, 7, 5, 6], [0, 6, 2, 10, 2]], np.float32)


def _sum(operand: Value, dimensions: list[int]) -> Value:
    return ops.reduce(operand, 0.0, ops.add, dimensions)


def _larger(value: Value, place: Value, other: Value, other_place: Value) -> list[Value]:
    better = (other > value) | (other.eq(value) & (other_place < place))
    return [ops.select(better, other, value), ops.select(better, other_place, place)]


def _windows(*arguments: Any, **options: Any) -> Any:
    return lambda x: ops.reduce_window(x, 0, ops.add, *arguments, **options)


def _smallest(padding: str) -> Any:
    return lambda x: ops.reduce_window(x, float(np.finfo(np.float32).max), ops.min, [3], [2], padding)


def _pooled_back(padding: Any = "VALID", strides: Any = (2, 2)) -> Any:
    def build(operand: Value, source: Value) -> Value:
        return ops.select_and_scatter(operand, ops.ge, [2, 2], strides, padding, source, 0, ops.add)

    return build


def _program(element: str = "f32[]", parameters: int = 2) -> Computation:
    with Builder("summed") as builder:
        values = [builder.parameter(number, element) for number in range(parameters)]
        return builder.build(values[0] + values[-1])


def _bits(x: Value) -> Value:
    """All elements or-ed together, and their complements."""
    return ops.reduce([x, ~x], [0, 0], lambda a, b, p, q: [a | p, b | q], [0])


REDUCE = (
    Row("Reduce", lambda x, i: ops.reduce(x, i, ops.max, [1]), (varying(4, 9), varying()), on=ORDERED),
    Row("Reduce", lambda x: ops.reduce(x, 0, ops.add, [0, 2]), (moderate(3, 4, 5),), "add", on=SUMMED),
    Row("Reduce", lambda x: ops.reduce(x, 1, ops.mul, [-1]), (moderate(3, 4),), "multiply", on=SUMMED),
    Row("Reduce", _bits, (varying(5, 3),), "bits", on=INTEGER | PRED),
    Row("Reduce", lambda x: ops.reduce(x, 0, ops.add, []), (moderate(3, 4),), "no-dimension", on=F32, hlo=FOLDED),
    Row(
        "Reduce", lambda x: ops.reduce(x, 7, ops.add, [0]), (np.zeros((0, 3), np.float32),), "empty", on=F32, hlo=FOLDED
    ),
    Row("Reduce", lambda x: _sum(x, [0]), (MATRIX,), "matrix-0", on=F32, expected=[5, 7, 9]),
    Row("Reduce", lambda x: _sum(x, [1]), (MATRIX,), "matrix-1", on=F32, expected=[6, 15]),
    Row("Reduce", lambda x: _sum(x, [0]), (LAYERS,), "layers-0", on=F32, expected=[[4, 8, 12], [16, 20, 24]]),
    Row("Reduce", lambda x: _sum(x, [2]), (LAYERS,), "layers-2", on=F32, expected=[[6, 15]] * 4),
    Row("Reduce", lambda x: _sum(x, [0, 1]), (LAYERS,), "layers-0-1", on=F32, expected=[20, 28, 36]),
    Row("Reduce", lambda x: _sum(x, [2, 0, 1]), (LAYERS,), "layers-all", on=F32, expected=84),
    Row(
        "Reduce",
        lambda x: _sum(x, [0]),
        (np.array([10, 11, 12, 13], np.float32),),
        "vector",
        on=F32,
        expected=46,
    ),
    Row(
        "Reduce",
        lambda x: ops.reduce([x, ops.iota("s32", [4, 9], 1)], [-np.inf, 0], _larger, [1]),
        (moderate(4, 9),),
        "argmax",
        on=frozenset({"f32", "f64", "f16", "bf16"}),
    ),
    Row("Reduce", lambda x: ops.reduce(x, 0.0, _program(), [0]), (moderate(4, 3),), "program", on=F32),
    Row(
        "Reduce",
        lambda x: ops.reduce(x, 0.0, lambda a, b: a + b * b * 0.5, [0]),
        (np.array([[1, 2], [3, 4]], np.float32),),
        "constant-inside",
        on=F32,
        reason="no reduction in XLA's sense: the computation does not commute, and two elements leave one order",
    ),
    Row(
        "Reduce",
        lambda x, i: ops.reduce(x, i, ops.add, [0]),
        (moderate(9), np.float32(0.5)),
        "wider-accumulator",
        on=frozenset({"bf16", "f16", "f32"}),
    ),
)

REDUCE_WINDOW = (
    Row(
        "ReduceWindow",
        lambda x, i: ops.reduce_window(x, i, ops.max, [2, 3], [2, 2], "SAME"),
        (varying(5, 8), varying()),
        on=ORDERED,
    ),
    Row("ReduceWindow", _windows([1, 3], padding="SAME"), (moderate(4, 7),), "add", on=SUMMED),
    Row(
        "ReduceWindow",
        lambda x: ops.reduce_window(x, -np.inf, ops.max, [2, 3], [2, 3]),
        (moderate(4, 6),),
        "pooling",
        on=F32,
    ),
    Row("ReduceWindow", _smallest("VALID"), (DIGITS,), "min-valid", on=F32, expected=[100, 1]),
    Row("ReduceWindow", _smallest("SAME"), (DIGITS,), "min-same", on=F32, expected=[1000, 10, 1]),
    Row("ReduceWindow", _windows([3]), (DIGITS,), "stride-1", on=F32, expected=[11100, 1110, 111]),
    Row("ReduceWindow", _windows([3], [2]), (DIGITS,), "stride-2", on=F32, expected=[11100, 111]),
    Row("ReduceWindow", _windows([2], [2]), (DIGITS,), "stride-of-window", on=F32, expected=[11000, 110]),
    Row(
        "ReduceWindow", _windows([3], padding="SAME"), (DIGITS,), "same", on=F32, expected=[11000, 11100, 1110, 111, 11]
    ),
    Row("ReduceWindow", _windows([2], [2], "SAME"), (DIGITS,), "same-odd", on=F32, expected=[11000, 110, 1]),
    Row("ReduceWindow", _windows([3], [2], [(1, 1)]), (DIGITS,), "explicit", on=F32, expected=[11000, 1110, 11]),
    Row(
        "ReduceWindow",
        _windows([2], [1], [(2, 0)]),
        (DIGITS,),
        "low",
        on=F32,
        expected=[0, 10000, 11000, 1100, 110, 11],
    ),
    Row("ReduceWindow", _windows([2], [1], [(-1, -1)]), (DIGITS,), "negative", on=F32, expected=[1100, 110]),
    Row(
        "ReduceWindow",
        _windows([3], [1], "VALID", [2]),
        (DIGITS,),
        "base-dilation",
        on=F32,
        expected=[11000, 1000, 1100, 100, 110, 10, 11],
    ),
    Row(
        "ReduceWindow",
        _windows([2], window_dilations=[3]),
        (DIGITS,),
        "window-dilation",
        on=F32,
        expected=[10010, 1001],
    ),
    Row(
        "ReduceWindow",
        _windows([2], [3], [(1, 2)], [2], [2]),
        (DIGITS,),
        "both-dilations",
        on=F32,
        expected=[0, 1100, 0, 1],
    ),
    Row("ReduceWindow", _windows([5], [1], [(4, 0)]), (DIGITS,), "cumulative", on=F32, expected=np.cumsum(DIGITS)),
    Row("ReduceWindow", _windows([6]), (DIGITS,), "no-place", on=F32, expected=[], hlo=FOLDED),
    Row(
        "ReduceWindow",
        lambda x: ops.reduce_window([x, ops.iota("s32", [4, 9], 1)], [-np.inf, 99], _larger, [2, 3], [2, 3]),
        (moderate(4, 9),),
        "argmax",
        on=F32,
    ),
    Row(
        "ReduceWindow",
        lambda x: ops.reduce_window(x, 0.0, _program(), [2, 2], padding="SAME"),
        (moderate(3, 4),),
        "program",
        on=F32,
    ),
)

SELECT_AND_SCATTER = (
    Row("SelectAndScatter", _pooled_back(), (varying(4, 6), moderate(2, 3)), on=ORDERED),
    Row("SelectAndScatter", _pooled_back("SAME"), (moderate(5, 5), moderate(3, 3)), "same", on=F32),
    Row("SelectAndScatter", _pooled_back([(1, 0), (0, 2)]), (moderate(3, 4), moderate(2, 3)), "explicit", on=F32),
    Row("SelectAndScatter", _pooled_back("VALID", (1, 1)), (moderate(4, 4), moderate(3, 3)), "overlapping", on=F32),
    Row(
        "SelectAndScatter",
        lambda x, source: ops.select_and_scatter(x, ops.ge, [2, 3], [2, 3], "VALID", source, 0, ops.add),
        (POOLED, np.array([[2, 6], [3, 1]], np.float32)),
        "figure-1",
        on=F32,
        expected=[[0, 0, 0, 0, 6, 0], [0, 0, 2, 0, 0, 0], [0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 0, 1]],
    ),
    Row(
        "SelectAndScatter",
        lambda x, source: ops.select_and_scatter(x, ops.ge, [2, 3], [2, 2], "VALID", source, 0, ops.add),
        (OVERLAPPING, np.array([[2, 6], [3, 1]], np.float32)),
        "figure-2",
        on=F32,
        expected=[[0, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 1, 0]],
    ),
    Row(
        "SelectAndScatter",
        lambda x, source: ops.select_and_scatter(x, ops.le, [3], [], "VALID", source, 10, ops.max),
        (np.array([3, 1, 1, 2, 0], np.float32), np.array([5, 20, 30], np.float32)),
        "smallest",
        on=F32,
        expected=[10, 20, 10, 10, 30],
    ),
)

ROWS = (*REDUCE, *REDUCE_WINDOW, *SELECT_AND_SCATTER)


def _around(x: Value, shift: Value) -> Value:
    return ops.reduce(x, 0, lambda a, b: a + b * shift, [0])


MALFORMED = (
    Malformed("Reduce", lambda p: ops.reduce([], [], ops.add, []), "0 operands with 0 initial values"),
    Malformed("Reduce", lambda p: ops.reduce([p("f32[2]")], [0, 0], ops.add, [0]), "1 operands with 2 initial values"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2,3]"), 0, ops.add, [2]), "out of range"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2,3]"), 0, ops.add, [1, -1]), "twice"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2]"), p("f32[1]"), ops.add, [0]), "must be a scalar"),
    Malformed("Reduce", lambda p: ops.reduce(p("s8[2]"), p("s32[]"), ops.add, [0]), "precision of floats"),
    Malformed("Reduce", lambda p: ops.reduce(p("s32[2]"), 0.5, ops.add, [0]), "does not fit s32"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2]"), 0, ops.abs, [0]), "is applied to"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2]"), 0, ops.lt, [0]), "(f32[]) is expected"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2]"), 0, _program("f32[]", 3), [0]), "must take 2 parameters"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2]"), 0, _program("s32[]"), [0]), "precision of floats"),
    Malformed("Reduce", lambda p: ops.reduce(p("f32[2]"), 0, _program("f32[1]"), [0]), "takes (f32[1]"),
    Malformed("Reduce", lambda p: _around(p("f32[2]"), p("f32[]")), "from around it"),
    Malformed(
        "Reduce",
        lambda p: ops.reduce([p("f32[2]"), p("f32[3]")], [0, 0], lambda a, b, x, y: [a, b], [0]),
        "equal dimensions",
    ),
    Malformed(
        "Reduce",
        lambda p: ops.reduce([p("f32[2]"), p("f32[2]")], [0, 0], lambda a, b, x, y: a + x, [0]),
        "(f32[], f32[]) is expected",
    ),
    Malformed("ReduceWindow", lambda p: ops.reduce_window(p("f32[4]"), 0, ops.add, [2, 2]), "window sizes [2, 2]"),
    Malformed("ReduceWindow", lambda p: ops.reduce_window(p("f32[4]"), 0, ops.add, [0]), "at least one element"),
    Malformed("ReduceWindow", lambda p: ops.reduce_window(p("f32[4]"), 0, ops.add, [2], [0]), "a stride must be"),
    Malformed("ReduceWindow", lambda p: ops.reduce_window(p("f32[4]"), 0, ops.add, [2], [1], "FULL"), "no padding"),
    Malformed("ReduceWindow", lambda p: ops.reduce_window(p("f32[4]"), 0, ops.add, [2], [1], [(1, 1)] * 2), "pair for"),
    Malformed(
        "ReduceWindow",
        lambda p: ops.reduce_window(p("f32[4]"), 0, ops.add, [2], base_dilations=[0]),
        "the dilation of the base",
    ),
    Malformed(
        "ReduceWindow", lambda p: ops.reduce_window(p("s32[4]"), p("f32[]"), ops.add, [2]), "precision of floats"
    ),
    Malformed("ReduceWindow", lambda p: ops.reduce_window(p("f32[4]"), 0, ops.ge, [2]), "(f32[]) is expected"),
    Malformed(
        "SelectAndScatter",
        lambda p: _pooled_back()(p("f32[4,4]"), p("f32[2,3]")),
        "the positions [2, 2]",
    ),
    Malformed("SelectAndScatter", lambda p: _pooled_back()(p("f32[4,4]"), p("s32[2,2]")), "precision of floats"),
    Malformed("SelectAndScatter", lambda p: _pooled_back("HALF")(p("f32[4,4]"), p("f32[2,2]")), "no padding"),
    Malformed("SelectAndScatter", lambda p: _pooled_back()(p("f32[4]"), p("f32[2]")), "window sizes [2, 2]"),
    Malformed(
        "SelectAndScatter",
        lambda p: ops.select_and_scatter(p("f32[4]"), ops.max, [2], [2], "VALID", p("f32[2]"), 0, ops.add),
        "(pred[]) is expected",
    ),
    Malformed(
        "SelectAndScatter",
        lambda p: ops.select_and_scatter(p("f32[4]"), ops.ge, [2], [2], "VALID", p("f32[2]"), 0, ops.ge),
        "(f32[]) is expected",
    ),
    Malformed(
        "SelectAndScatter",
        lambda p: ops.select_and_scatter(p("f32[4]"), ops.ge, [2], [2], "VALID", p("f32[2]"), p("f32[1]"), ops.add),
        "must be a scalar",
    ),
)
