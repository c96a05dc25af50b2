"""The innermost loop of products: a tile of sums in registers, to which each term adds a column times a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Number, Value, vector_of
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.loops import carrying


@dataclass(frozen=True)
class Side:
    """A factor as the micro-kernel reads it; all distances are in bytes.

    Attributes:
        kind: of what is read at once of a row: an element, or a group of terms as an integer.
        across: between rows (left factor) or vectors (right factor) of the tile, where they have one address.
        along: between terms of the innermost loop.
        align: of an element in memory.
        signed: whether integers narrower than the sums have a sign.
    """

    kind: str
    across: int
    along: int
    align: int
    signed: bool = True


@dataclass(frozen=True)
class Turn:
    """A loop of terms around the innermost one.

    Attributes:
        count: of its iterations.
        left: bytes from one iteration to the next in the left factor.
        right: the same in the right factor.
    """

    count: int
    left: int
    right: int


def add_terms(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    left: Side,
    right: Side,
    rows: Sequence[Value],
    vectors: Sequence[Value],
    terms: Number,
    sums: Sequence[Value],
    turns: Sequence[Turn] = (),
) -> list[Value]:
    """Add terms to a tile of sums.

    Args:
        rows: the addresses of the tile's rows in the left factor at its first term, or of the first row alone.
        vectors: the addresses of the tile's vectors in the right factor at its first term, or of the first alone.
        terms: of the innermost loop, at least 1.
        sums: by rows, ``tile.rows * tile.vectors`` of them.
        turns: loops around it, the outermost one first.

    Returns:
        the sums.
    """
    if turns:
        turn, inner = turns[0], turns[1:]
        with carrying(function, 0, turn.count, [*rows, *vectors, *sums]) as (loop, _, carried):
            at, places, totals = _parts(carried, len(rows), len(vectors))
            totals = add_terms(function, tile, arithmetic, left, right, at, places, terms, totals, inner)
            loop.next([*_moved(function, at, turn.left), *_moved(function, places, turn.right), *totals])
        return loop.results[len(rows) + len(vectors) :]
    with carrying(function, 0, terms, [*rows, *vectors, *sums]) as (loop, _, carried):
        at, places, totals = _parts(carried, len(rows), len(vectors))
        loaded = [
            arithmetic.right(function.load(place, wide(right.kind, tile.lanes), right.align), signed=right.signed)
            for place in _spread_out(function, places, tile.vectors, right.across)
        ]
        following = []
        for row, place in enumerate(_spread_out(function, at, tile.rows, left.across)):
            factor = arithmetic.left(function.load(place, left.kind, left.align), tile.lanes, signed=left.signed)
            for number, vector in enumerate(loaded):
                following.append(arithmetic.multiply_add(factor, vector, totals[row * tile.vectors + number]))
        loop.next([*_moved(function, at, left.along), *_moved(function, places, right.along), *following])
    return loop.results[len(rows) + len(vectors) :]


def zeros(function: Function, tile: Tile, kind: str) -> list[Value]:
    """Sums without terms."""
    zero = function.constant(0, wide(kind, tile.lanes))
    return [zero] * (tile.rows * tile.vectors)


def wide(kind: str, lanes: int) -> str:
    """A vector's type, or the number's for one lane."""
    return vector_of(kind, lanes) if lanes > 1 else kind


def _parts(carried: Sequence[Value], rows: int, vectors: int) -> tuple[list[Value], list[Value], list[Value]]:
    return list(carried[:rows]), list(carried[rows : rows + vectors]), list(carried[rows + vectors :])


def _moved(function: Function, places: Sequence[Value], distance: int) -> list[Value]:
    return [function.offset(place, I8, distance) for place in places]


def _spread_out(function: Function, places: Sequence[Value], count: int, distance: int) -> list[Value]:
    if len(places) == count:
        return list(places)
    return [function.offset(places[0], I8, number * distance) for number in range(count)]
