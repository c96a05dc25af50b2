"""Rows and malformed uses of gather and scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge import Builder, Computation, Value
from hloforge.dialect import ops
from hloforge.dialect.op import INTEGER, NUMERIC
from hloforge.dialect.ops import GatherDimensionNumbers, ScatterDimensionNumbers
from tests.operations.row import Malformed, Row, moderate, varying

F32 = frozenset({"f32"})
S32 = frozenset({"s32"})
FEW = frozenset({"pred", "s8", "u16", "s32", "bf16", "f32", "f64", "c64"})
# The array of XLA's examples, and places in it.
SHEET = np.arange(16 * 11, dtype=np.float32).reshape(16, 11)
FIVE = np.array([[0, 0], [8, 5], [3, 1], [1, 4], [7, 2]], np.int64)
TWENTY = np.array([[(7 * g + h) % 9, (3 * g + 5 * h) % 6] for g in range(4) for h in range(5)], np.int64).reshape(
    4, 5, 2
)
# Whole rows at places that are one number.
TAKEN_ROWS = GatherDimensionNumbers([1], [0], [0], 1)
UPDATED_ROWS = ScatterDimensionNumbers([1], [0], [0], 1)
# Four places of a vector of six, no two alike.
PLACES = np.array([[4], [0], [5], [2]], np.int32)


def _window(x: int, y: int) -> np.ndarray[Any, Any]:
    return SHEET[x : x + 8, y : y + 6]


def _replace(old: Value, new: Value) -> Value:
    return new


def _difference() -> Computation:
    with Builder("difference") as builder:
        old, new = builder.parameter(0, "f32[]"), builder.parameter(1, "f32[]")
        return builder.build(old - new)


def _elements(operand: Value, places: Value, **numbers: Any) -> Value:
    """One element at each place of a matrix."""
    return ops.gather(
        operand, places, slice_sizes=[1, 1], collapsed_slice_dims=[0, 1], start_index_map=[0, 1], **numbers
    )


GATHERS = (
    Row("Gather", lambda x, i: ops.gather(x, i, TAKEN_ROWS, [1, 5]), (varying(7, 5), np.array([6, 0, 3, 3], np.int32))),
    Row(
        "Gather",
        lambda x, i: ops.gather(x, i, offset_dims=[1, 2], start_index_map=[0, 1], slice_sizes=[8, 6]),
        (SHEET, FIVE),
        "dynamic-slices",
        on=F32,
        expected=np.stack([_window(x, y) for x, y in FIVE]),
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(x, i, offset_dims=[2, 3], start_index_map=[0, 1], slice_sizes=[8, 6]),
        (SHEET, TWENTY),
        "two-batch-dimensions",
        on=F32,
        expected=np.stack([np.stack([_window(x, y) for x, y in line]) for line in TWENTY]),
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(
            x, i, offset_dims=[2], collapsed_slice_dims=[0], start_index_map=[0], slice_sizes=[1, 11]
        ),
        (SHEET, TWENTY[..., :1]),
        "gather-nd",
        on=F32,
        expected=SHEET[TWENTY[..., 0]],
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(x, i, GatherDimensionNumbers([0, 2], [], [1, 0], 0), [3, 2]),
        (moderate(6, 5), np.array([[3, 0, 1], [0, 2, 3]], np.int64)),
        "vectors-first-and-map-permuted",
        on=FEW,
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(x, i, GatherDimensionNumbers([1, 2], [], [0, 1], 1), [3, 2]),
        (SHEET, np.array([[-5, 2], [15, 10], [2**31 - 1, -(2**31)], [13, 9]], np.int32)),
        "clamped",
        on=F32,
        expected=np.stack([SHEET[x : x + 3, y : y + 2] for x, y in ((0, 2), (13, 9), (13, 0), (13, 9))]),
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(x, i, TAKEN_ROWS, [1, 11]),
        (SHEET, np.array([255, 0, 6, 128], np.uint8)),
        "unsigned-indices",
        on=F32,
        expected=SHEET[[15, 0, 6, 15]],
        judge="xla",
        reason="StableHLO's interpreter reads 255 as -1",
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(
            x,
            i,
            GatherDimensionNumbers([2], [2], [2], 2, [0, 1], [1, 0]),
            [1, 1, 1, 3],
            indices_are_sorted=True,
        ),
        (moderate(2, 3, 4, 3), np.array([[[0], [0]], [[1], [1]], [[3], [2]]], np.int32)),
        "batching",
        on=FEW,
    ),
    Row("Gather", lambda x, i: _elements(x, i), (moderate(6, 5), np.array([4, 3], np.int32)), "one-element", on=FEW),
    Row(
        "Gather",
        lambda x, i: _elements(x, i),
        (moderate(6, 5), np.zeros((0, 2), np.int32)),
        "no-places",
        on=F32,
        hlo="constant",
        reason="the export to HLO makes constants of empty results",
    ),
    Row(
        "Gather",
        lambda x, i: ops.gather(x, i, GatherDimensionNumbers([0], [], [0], 0), [4]),
        (moderate(9), np.int32(3)),
        "scalar-place",
        on=FEW,
    ),
)

SCATTERS = (
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, _replace, UPDATED_ROWS, unique_indices=True),
        (varying(7, 5), np.array([6, 0, 3], np.int32), varying(3, 5)),
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(
            x, i, u, ops.add, inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], unique_indices=True
        ),
        (moderate(6), PLACES, moderate(4)),
        "add",
        on=NUMERIC,
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, ops.add, UPDATED_ROWS),
        (moderate(4, 3), np.array([2, 0, 2, 2, 9, -1], np.int32), moderate(6, 3)),
        "add-repeatedly-and-out-of-bounds",
        on=INTEGER | {"pred"},
        reason="the order of additions is not fixed, so that roundings differ",
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, ops.max, UPDATED_ROWS),
        (moderate(4, 3), np.array([2, 0, 2, 2], np.int64), moderate(4, 3)),
        "maximum",
        on=FEW - {"c64"},
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, _difference(), UPDATED_ROWS, unique_indices=True),
        (moderate(4, 3), np.array([2, 0], np.int64), moderate(2, 3)),
        "program",
        on=F32,
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, ops.add, ScatterDimensionNumbers([1, 2], [], [0, 1], 1)),
        (
            np.zeros((4, 5), np.float32),
            np.array([[0, 0], [1, 2], [9, 0], [-3, 0]], np.int32),
            np.ones((4, 2, 3), np.float32),
        ),
        "windows",
        on=F32,
        expected=[[1, 1, 1, 0, 0], [1, 1, 2, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]],
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, ops.add, ScatterDimensionNumbers([1, 2], [], [0, 1], 1)),
        (moderate(4, 5), np.array([[3, 0], [0, 1], [-1, 0], [1, 3]], np.int32), moderate(4, 2, 3)),
        "windows-partly-out-of-bounds",
        on=F32,
        judge="xla",
        reason="XLA's client leaves out the whole window, StableHLO's interpreter its elements out of bounds",
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, _replace, ScatterDimensionNumbers([0, 1], [], [1, 0], 0)),
        (moderate(5, 6), np.array([4, 2], np.int32), moderate(3, 2)),
        "one-window-and-map-permuted",
        on=FEW,
    ),
    Row(
        "Scatter",
        lambda x, y, i, u, v: ops.scatter(
            [x, y], i, [u, v], lambda a, b, c, d: (a + c * d.astype("f32"), ops.max(b, d)), UPDATED_ROWS
        ),
        (
            np.array([[1, 2], [3, 4], [5, 6]], np.float32),
            np.array([[1, 1], [1, 1], [9, 9]], np.int32),
            np.array([2, 0, 2], np.int32),
            np.array([[1, 2], [3, 4], [0.5, 0.25]], np.float32),
            np.array([[10, 2], [0, 3], [4, 4]], np.int32),
        ),
        "two-operands",
        on=F32,
        expected=([[1, 14], [3, 4], [17, 11]], [[1, 3], [1, 1], [10, 9]]),
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(
            x, i, u, ops.add, ScatterDimensionNumbers([2], [2], [2], 2, [0, 1], [1, 0]), indices_are_sorted=True
        ),
        (moderate(2, 3, 4, 3), np.array([[[0], [0]], [[1], [1]], [[3], [2]]], np.int32), moderate(3, 2, 3)),
        "batching",
        on=FEW,
    ),
    Row(
        "Scatter",
        lambda x, i, u: ops.scatter(x, i, u, ops.mul, ScatterDimensionNumbers([], [0], [0], 0)),
        (moderate(6), np.int32(4), moderate()),
        "scalar-place",
        on=FEW,
    ),
)
ROWS = GATHERS + SCATTERS


def _gather(operand: str, indices: str, sizes: list[int], **numbers: Any) -> Any:
    return lambda p: ops.gather(p(operand), p(indices), slice_sizes=sizes, **numbers)


def _scatter(operand: str, indices: str, updates: str, **numbers: Any) -> Any:
    return lambda p: ops.scatter(p(operand), p(indices), p(updates), ops.add, **numbers)


_ROW = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0]}
_UPDATE = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}

MALFORMED = (
    Malformed("Gather", _gather("f32[7,5]", "f32[4,1]", [1, 5], **_ROW), "must be integers"),
    Malformed("Gather", lambda p: ops.gather(p("f32[7]"), 3), "start_indices must be a Value or a numpy array, not 3"),  # type: ignore[arg-type]
    Malformed("Gather", _gather("f32[7,5]", "s32[4,2]", [1, 5], **_ROW), "as many entries as an index vector"),
    Malformed("Gather", _gather("f32[7,5]", "s32[4,1]", [1, 6], **_ROW), "must be from 0 to 5"),
    Malformed("Gather", _gather("f32[7,5]", "s32[4,1]", [2, 5], **_ROW), "which is collapsed or a batch, must be 1"),
    Malformed("Gather", _gather("f32[7,5]", "s32[4,1]", [5], **_ROW), "slice_sizes [5] must have one entry for each"),
    Malformed("Gather", _gather("f32[7,5]", "s32[4,1]", [1, 5], start_index_map=[0]), "together be as many as the 2"),
    Malformed(
        "Gather", _gather("f32[7,5]", "s32[4,1]", [1, 5], **{**_ROW, "offset_dims": [2]}), "dimensions of the result"
    ),
    Malformed(
        "Gather", _gather("f32[7,5]", "s32[4,1]", [1, 5], **{**_ROW, "start_index_map": [2]}), "of the operand, from"
    ),
    Malformed("Gather", _gather("f32[7,5]", "s32[4,1]", [1, 5], index_vector_dim=3, **_ROW), "index_vector_dim 3"),
    Malformed(
        "Gather",
        _gather("f32[7,5]", "s32[4,2]", [1, 1], collapsed_slice_dims=[1, 0], start_index_map=[0, 1]),
        "must ascend",
    ),
    Malformed(
        "Gather",
        _gather("f32[7,5]", "s32[4,2]", [1, 1], collapsed_slice_dims=[0, 1], start_index_map=[1, 1]),
        "names a dimension twice",
    ),
    Malformed(
        "Gather",
        _gather(
            *("f32[7,5]", "s32[4,1]", [1, 1]),
            collapsed_slice_dims=[1],
            start_index_map=[1],
            operand_batching_dims=[0],
            start_indices_batching_dims=[0],
        ),
        "must have equal sizes",
    ),
    Malformed(
        "Gather",
        _gather(
            *("f32[7,5]", "s32[7,1]", [1, 1]),
            collapsed_slice_dims=[1],
            start_index_map=[0],
            operand_batching_dims=[0],
            start_indices_batching_dims=[0],
        ),
        "is in both start_index_map and operand_batching_dims",
    ),
    Malformed(
        "Gather",
        _gather(
            *("f32[7,5]", "s32[7,1]", [1, 1]),
            collapsed_slice_dims=[1],
            start_index_map=[1],
            operand_batching_dims=[0],
            start_indices_batching_dims=[1],
        ),
        "has index_vector_dim 1",
    ),
    Malformed("Gather", _gather("f32[7,5]", "s32[4,1]", [1, 5], offset=[1]), "has no field offset"),
    Malformed(
        "Gather",
        lambda p: ops.gather(p("f32[7,5]"), p("s32[4]"), TAKEN_ROWS, [1, 5], offset_dims=[1]),
        "not both",
    ),
    Malformed("Scatter", _scatter("f32[7,5]", "pred[4,1]", "f32[4,5]", **_UPDATE), "must be integers"),
    Malformed("Scatter", _scatter("f32[7,5]", "s32[4,1]", "s32[4,5]", **_UPDATE), "one element type"),
    Malformed("Scatter", _scatter("f32[7,5]", "s32[4,1]", "f32[4,6]", **_UPDATE), "exceed dimension 1 of f32[7,5]"),
    Malformed("Scatter", _scatter("f32[7,5]", "s32[4,1]", "f32[3,5]", **_UPDATE), "must have equal sizes"),
    Malformed("Scatter", _scatter("f32[7,5]", "s32[4,1]", "f32[4]", **_UPDATE), "must have 2 dimensions"),
    Malformed(
        "Scatter",
        lambda p: ops.scatter([p("f32[7]"), p("f32[7]")], p("s32[4]"), p("f32[4]"), ops.add),
        "2 operands with 1 updates",
    ),
    Malformed(
        "Scatter",
        lambda p: ops.scatter(
            p("f32[7,5]"),
            p("s32[4]"),
            p("f32[4,5]"),
            lambda old, new: ops.convert_element_type(new, "s32"),
            UPDATED_ROWS,
        ),
        "where (f32[]) is expected",
    ),
    Malformed(
        "Scatter",
        lambda p: ops.scatter(p("f32[7,5]"), p("s32[4]"), p("f32[4,5]"), ops.neg, UPDATED_ROWS),
        "is applied to (f32[], f32[])",
    ),
    Malformed(
        "Scatter",
        lambda p: _capturing(p("f32[7,5]"), p("s32[4]"), p("f32[4,5]"), p("f32[]")),
        "from around it",
    ),
)


def _capturing(operand: Value, places: Value, updates: Value, outside: Value) -> Value:
    return ops.scatter(operand, places, updates, lambda old, new: old + outside, UPDATED_ROWS)
