"""The innermost loop of products: a tile of sums in registers, to which each term adds a column times a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, is_float, vector_of
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.loops import carrying


@dataclass(frozen=True)
class Side:
    """A factor as the micro-kernel reads it.

    Attributes:
        kind: of an element in memory, which is the sums' or is widened to it.
        across: elements between rows (left factor) of the tile.
        along: elements between terms.
        signed: whether narrow integers have a sign.
    """

    kind: str
    across: int
    along: int
    signed: bool = True


def multiply_add(function: Function, left: Value, right: Value, total: Value) -> Value:
    """``left * right + total``, fused where the processor can."""
    if is_float(total.kind):
        return function.intrinsic("fmuladd", total.kind, left, right, total)
    return left * right + total


def add_terms(
    function: Function,
    tile: Tile,
    kind: str,
    left: Side,
    right: Side,
    rows: Value,
    vectors: Sequence[Value],
    terms: Value | int,
    sums: Sequence[Value],
) -> list[Value]:
    """Add terms to a tile of sums.

    Args:
        kind: of the sums.
        rows: the address of the tile's first row in the left factor, at its first term.
        vectors: the addresses of the tile's vectors in the right factor, at its first term; one address if they
            follow each other.
        terms: how many, at least 1.
        sums: by rows, ``tile.rows * tile.vectors`` of them.

    Returns:
        the sums.
    """
    with carrying(function, 0, terms, [rows, *vectors, *sums]) as (loop, _, carried):
        at, places, totals = carried[0], carried[1 : 1 + len(vectors)], carried[1 + len(vectors) :]
        starts = places
        if len(places) < tile.vectors:
            starts = [function.offset(places[0], right.kind, place * tile.lanes) for place in range(tile.vectors)]
        row_of_right = [_vector(function, start, right, kind, tile.lanes) for start in starts]
        following = []
        for row in range(tile.rows):
            one = function.load(function.offset(at, left.kind, row * left.across), left.kind)
            factor = one.as_(kind, signed=left.signed)
            if tile.lanes > 1:
                factor = function.spread(factor, tile.lanes)
            for place, vector in enumerate(row_of_right):
                following.append(multiply_add(function, factor, vector, totals[row * tile.vectors + place]))
        loop.next(
            [
                function.offset(at, left.kind, left.along),
                *(function.offset(place, right.kind, right.along) for place in places),
                *following,
            ]
        )
    return loop.results[1 + len(vectors) :]


def zeros(function: Function, tile: Tile, kind: str) -> list[Value]:
    """Sums without terms."""
    zero = function.constant(0, vector_of(kind, tile.lanes) if tile.lanes > 1 else kind)
    return [zero] * (tile.rows * tile.vectors)


def _vector(function: Function, place: Value, side: Side, kind: str, lanes: int) -> Value:
    stored = function.load(place, vector_of(side.kind, lanes) if lanes > 1 else side.kind)
    return stored.as_(kind, signed=side.signed)
