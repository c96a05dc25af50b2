"""Blocks of short rows as one loop: rows of nine numbers make no vectors, eleven such rows together do.

Where arrays are read as if rows and columns were one dimension, a loop runs over the elements of several rows. What is
read of each column alone, such as a mean of columns that is subtracted from each row, is repeated for a block once, in
the first-level cache; what is read of each row alone is repeated for its columns in each block. Sums over rows are kept
for each element of a block and added up in the end. Sums of rows are made of terms that are computed for a block first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol

# Columns of rows that LLVM makes no good vectors of; fewer are written out, unless rows are added up.
_LEAST, _LEAST_ADDED, _MOST = 5, 2, 31
# Elements of a block, at least, and blocks from which on it pays.
_BLOCK, _BLOCKS = 96, 4
# Columns that are not written out, and elements that vectors leave no rest of: then few dear rows pay as well.
_NOT_WRITTEN, _WHOLE = 9, 8
# Elements of a vector, or of two.
_LANES = 16
_BLOCKS_OF_EXTREMES, _BLOCKS_OF_VECTORS = 16, 64
_MOST_REPEATED = 4
_ORDERLESS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


@dataclass(frozen=True)
class RowBlocks:
    """How rows are taken together.

    Attributes:
        rows: of a block.
        columns: of a row.
        total: rows in all.
        repeated: what is read of each column alone, with the numbers of elements.
        spread: what is read of each row alone.
    """

    rows: int
    columns: int
    total: int
    repeated: list[tuple[Array, Index]]
    spread: list[tuple[Array, Index]]

    @property
    def size(self) -> int:
        """Elements of a block."""
        return self.rows * self.columns


def row_blocks(
    place: Place,
    found: Accesses,
    rows: tuple[int, int],
    columns: tuple[int, int],
    uses: Sequence[dict[Symbol, int]],
    *,
    adds_rows: bool,
    are_dear: bool = False,
    blocks: int = _BLOCKS,
) -> RowBlocks | None:
    """The blocks of two loops, the second inside the first; None where rows do not follow each other in memory.

    Args:
        rows: the innermost dimension of the loop over rows, and how many there are.
        columns: the same of columns.
        uses: the factors of counters in all that the code computes.
        adds_rows: whether a reduction adds rows up.
        are_dear: whether it adds up what costs much in each row.
        blocks: from how many on they pay.
    """
    (row_dim, total), (column_dim, size) = rows, columns
    count = _rows_of(size, total // blocks)
    least = _LEAST_ADDED if adds_rows else _LEAST
    pays = total >= blocks * count or (are_dear and size >= _NOT_WRITTEN and total * size % _WHOLE == 0)
    if not least <= size <= _MOST or not pays or found.conditions or found.is_irregular:
        return None
    count = min(count, total)
    row, column = (place[d].terms[0][0] for d in (row_dim, column_dim))
    plain = {*found.fixed, *(index.terms[0][0] for index in place if index.terms)}
    repeated: list[tuple[Array, Index]] = []
    spread: list[tuple[Array, Index]] = []
    for array, number in dict.fromkeys(found.loads):
        factors = dict(number.terms)
        if all(symbol in plain for symbol in factors) and (column in factors) != (row in factors):
            (repeated if column in factors else spread).append((array, number))
    own = [dict(number.terms) for _, number in (*repeated, *spread)]
    if len(own) > _MOST_REPEATED or not all(
        one.get(row, 0) == one.get(column, 0) * size for one in uses if one not in own
    ):
        return None
    return RowBlocks(count, size, total, repeated, spread)


def _rows_of(columns: int, most: int) -> int:
    """Rows of a block: enough of them, and whole vectors if there are as many, because LLVM computes a rest of a
    vector element by element."""
    least = -(-_BLOCK // columns)
    whole = _LANES // math.gcd(_LANES, columns)
    rounded = -(-least // whole) * whole
    return rounded if rounded <= most else least


def least_blocks(columns: int, lanes: int, reductions: Sequence[Op]) -> int:
    """From how many blocks on rows are added up in them, because what the last one leaves is added number by number.

    Rows of half a vector and more have vectors of their own, but extremes of floats wait for each other there.
    """
    if columns * 2 <= lanes:
        return _BLOCKS
    return _BLOCKS_OF_VECTORS if all(map(is_sum, reductions)) else _BLOCKS_OF_EXTREMES


def is_orderless(op: Op) -> bool:
    """Whether the terms of a reduction may be combined in any order."""
    inner = op.inner[0]
    return len(inner.ops) == 1 and inner.ops[0].name in _ORDERLESS and inner.results == inner.ops[0].results


def is_sum(op: Op) -> bool:
    """Whether terms are combined by one instruction: not so extremes of floats, of which NaN is one."""
    return is_orderless(op) and not (is_extreme(op) and "f" in op.results[0].element)


def is_float_sum(op: Op) -> bool:
    """Whether a reduction adds floats whose sums are not rounded to fewer bits on the way, as those of 16 bits are."""
    is_wide = op.results[0].element in ("f32", "f64", "complex<f32>", "complex<f64>")
    return is_wide and is_orderless(op) and op.inner[0].ops[0].name == "add"


def is_extreme(op: Op) -> bool:
    """Whether a reduction is a maximum or a minimum."""
    return is_orderless(op) and op.inner[0].ops[0].name in ("maximum", "minimum")
