"""Rows and malformed uses of dots."""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.ops import DotAlgorithm, DotDimensionNumbers
from tests.operations.row import Malformed, Row, moderate

F32 = frozenset({"f32"})
BF16 = frozenset({"bf16"})
WIDE = frozenset({"pred", "s32", "u8", "bf16", "f32", "f64", "c64"})
# The worked examples of XLA's text.
ROWS_OF_THREE = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
EQUAL_ROWS = np.array([[1, 1, 1], [2, 2, 2]], np.float32)
TWO_MATRICES = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.float32)
TWO_IDENTITIES = np.array([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], np.float32)
BATCHED = DotDimensionNumbers([2], [1], [0], [0])

ROWS = (
    Row("Dot", lambda x, y: ops.dot(x, y), (moderate(3, 4), moderate(4, 5))),
    Row("Dot", lambda x, y: ops.dot(x, y), (moderate(7), moderate(7)), "vectors", on=WIDE),
    Row("Dot", lambda x, y: ops.dot(x, y), (moderate(3, 7), moderate(7)), "matrix-vector", on=WIDE),
    Row("Dot", lambda x, y: ops.dot(x, y), (moderate(7), moderate(7, 3)), "vector-matrix", on=WIDE),
    Row("Dot", lambda x, y: ops.dot(x, y), (moderate(2, 3, 4), moderate(3, 5, 6)), "more-dimensions", on=WIDE),
    Row("Dot", lambda x, y: ops.dot(x, y), (moderate(2, 0), moderate(0, 3)), "nothing-to-sum", on=F32),
    Row("Dot", lambda x, y: x @ y, (moderate(2, 3), moderate(3, 2)), "operator", on=F32),
    Row("Dot", lambda x, y: ops.dot(x, y, "HIGHEST"), (moderate(8, 8), moderate(8, 8)), "precision", on=F32),
    Row(
        "Dot",
        lambda x, y: ops.dot(x, y, preferred_element_type="s32"),
        (np.full((2, 9), 100, np.int8), np.full((9, 3), 100, np.int8)),
        "preferred",
        on=F32,
        expected=np.full((2, 3), 90000),
    ),
    Row("DotGeneral", lambda x, y: ops.dot_general(x, y, BATCHED), (moderate(2, 3, 4), moderate(2, 4, 5))),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers([1], [1])),
        (ROWS_OF_THREE, EQUAL_ROWS),
        "contracting",
        on=F32,
        expected=[[6, 12], [15, 30]],
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, BATCHED),
        (TWO_MATRICES, TWO_IDENTITIES),
        "batch",
        on=F32,
        expected=TWO_MATRICES,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers([0, 3], [2, -1], [2, 1], [0, 1])),
        (moderate(3, 5, 2, 4), moderate(2, 5, 3, 6, 4)),
        "any-order",
        on=WIDE,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers([], [])),
        (moderate(2, 3), moderate(4)),
        "outer-product",
        on=WIDE,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers([], [], [0], [0])),
        (moderate(4), moderate(4)),
        "products",
        on=WIDE,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers([1], [0]), ["HIGH", "DEFAULT"]),
        (moderate(4, 4), moderate(4, 4)),
        "precision-of-each",
        on=F32,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, BATCHED, preferred_element_type="f32"),
        (moderate(2, 3, 40), moderate(2, 40, 5)),
        "preferred",
        on=BF16,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers([1], [0]), algorithm="dot_f32_f32_f32"),
        (moderate(4, 4), moderate(4, 4)),
        "algorithm",
        on=F32,
    ),
    Row(
        "DotGeneral",
        lambda x, y: ops.dot_general(
            x, y, DotDimensionNumbers([1], [0]), algorithm=DotAlgorithm("bf16", "bf16", "f32")
        ),
        (np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 0.5], [2, 8]], np.float32)),
        "rounding-algorithm",
        on=F32,
        expected=[[5, 16.5], [11, 33.5]],
    ),
)

MALFORMED = (
    Malformed("Dot", lambda p: ops.dot(p("f32[]"), p("f32[2]")), "must not be scalars"),
    Malformed("Dot", lambda p: ops.dot(p("f32[2,3]"), p("f32[2]")), "has size 3, and dimension 0 of f32[2]"),
    Malformed("Dot", lambda p: ops.dot(p("f32[2,3]"), p("f32[3]"), "EXACT"), "must be one of DEFAULT, HIGH, HIGHEST"),
    Malformed("Dot", lambda p: ops.dot(p("f32[2]"), p("f32[2]"), ["HIGH"]), "must be one of DEFAULT, HIGH, HIGHEST"),
    Malformed("Dot", lambda p: ops.dot(p("s32[2]"), p("s32[2]"), preferred_element_type="s8"), "narrower than s32"),
    Malformed("Dot", lambda p: ops.dot(p("f32[2]"), p("f32[2]"), algorithm="f8"), "no dot algorithm 'f8'"),
    Malformed("Dot", lambda p: ops.dot(p("f32[2]"), p("f32[2]"), preferred_element_type="f33"), "f33"),
    Malformed(
        "DotGeneral", lambda p: ops.dot_general(p("f32[2]"), p("f32[2]"), DotDimensionNumbers([1], [0])), "out of range"
    ),
    Malformed(
        "DotGeneral",
        lambda p: ops.dot_general(p("f32[2,2]"), p("f32[2,2]"), DotDimensionNumbers([0], [0], [-2], [1])),
        "a dimension is named twice",
    ),
    Malformed(
        "DotGeneral",
        lambda p: ops.dot_general(p("f32[2,2]"), p("f32[2,2]"), DotDimensionNumbers([0, 1], [0])),
        "as many contracting dimensions",
    ),
    Malformed(
        "DotGeneral",
        lambda p: ops.dot_general(p("f32[2,3]"), p("f32[3,4]"), DotDimensionNumbers([1], [0], [0], [1])),
        "batch dimension 0 of f32[2,3] has size 2",
    ),
    Malformed(
        "DotGeneral",
        lambda p: ops.dot_general(
            p("f32[2]"), p("f32[2]"), DotDimensionNumbers([0], [0]), "HIGH", algorithm="f32_f32_f32"
        ),
        "an algorithm determines the precision",
    ),
    Malformed(
        "DotGeneral",
        lambda p: ops.dot_general(
            p("f32[2]"), p("f32[2]"), DotDimensionNumbers([0], [0]), algorithm=DotAlgorithm("f32", "f32", "f32", 3)
        ),
        "no algorithm that XLA knows",
    ),
)
