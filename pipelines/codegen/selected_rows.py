"""Short rows with borders as one loop: rolls of six numbers make no vectors, a hundred elements of several rows do.

Where a condition says what is read along short dimensions, loops over these are cut into pieces of a few iterations.
Where arrays are read as if the short dimensions and the one before them were one, a loop runs over the elements of
several rows instead, computes both of what a condition chooses from, and selects. Which element has which is kept for
a block of rows. The first and last rows, where what is not chosen may lie outside of its array, have their own loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.evaluate import Condition, Place
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol

# Columns of a row, elements of all short dimensions, and what both of all choices may cost.
_MOST, _LEAST_SHORT, _MOST_SHORT, _MOST_COST = 31, 5, 256, 64
# Elements of a block, at least, and blocks from which on it pays.
_BLOCK, _BLOCKS = 96, 4
# Rows at each end that may have loops of their own.
_ENDS = range(3)


@dataclass(frozen=True)
class SelectedRows:
    """How short rows are taken together.

    Attributes:
        inner: how many of the innermost loops are short.
        size: elements of these.
        rows: of a block.
        first: the first row that is taken so.
        last: the one after the last.
        conditions: of the short dimensions: each with its dimension.
    """

    inner: int
    size: int
    rows: int
    first: int
    last: int
    conditions: list[tuple[int, Condition]]


def selected_rows(
    place: Place,
    found: Accesses,
    groups: Sequence[Group],
    shape: Sequence[int],
    analysis: Callable[[Place], Accesses],
) -> SelectedRows | None:
    """The short rows of loops; None where there are none.

    Args:
        analysis: what is read at other places.
    """
    if found.is_irregular or not found.conditions or found.cost > _MOST_COST or groups[-1].size > _MOST:
        return None
    numbers = {*(number for _, number in found.loads), *(condition.index for condition in found.conditions)}
    dims = {index.terms[0][0]: d for d, index in enumerate(place) if index.terms}
    if any(use not in numbers or any(symbol not in dims for symbol, _ in use.terms) for use in found.uses):
        return None
    for inner in range(1, len(groups)):
        if (rows := _rows(place, found, groups, inner, shape, dims, analysis)) is not None:
            return rows
    return None


def _rows(
    place: Place,
    found: Accesses,
    groups: Sequence[Group],
    inner: int,
    shape: Sequence[int],
    dims: dict[Symbol, int],
    analysis: Callable[[Place], Accesses],
) -> SelectedRows | None:
    size = prod(group.size for group in groups[-inner:])
    outer = groups[-inner - 1]
    if not _LEAST_SHORT <= size <= _MOST_SHORT:
        return None
    short = [d for group in groups[-inner:] for d in group.dims if shape[d] > 1]
    row = outer.dims[-1]
    joined = [(place[d].terms[0][0], place[e].terms[0][0], shape[e]) for d, e in pairwise((row, *short))]
    for _, number in found.loads:
        factors = dict(number.terms)
        if any(factors.get(one, 0) != factors.get(other, 0) * count for one, other, count in joined):
            return None
    if not any(d in short for condition in found.conditions for d in _dims_of(condition, dims)):
        return None
    rows = -(-_BLOCK // size)
    for before, after in product(_ENDS, _ENDS):
        last = outer.size - after
        if last - before < _BLOCKS * rows:
            break
        middle = list(place)
        if before or after:
            if len(outer.dims) > 1:
                break
            middle[row] = Index(((Symbol(last - before - 1), 1),), before)
        rest = analysis(tuple(middle)) if before or after else found
        open_ = {(one.index, one.limit, one.step): one for one in rest.conditions if one.known is None}
        own = [(_dims_of(condition, dims), condition) for condition in open_.values()]
        if all(len(of) == 1 and of[0] in short for of, _ in own) and _is_inside(rest):
            return SelectedRows(inner, size, rows, before, last, [(of[0], condition) for of, condition in own])
    return None


def _dims_of(condition: Condition, dims: dict[Symbol, int]) -> list[int]:
    """The dimensions that a condition depends on; -1 for that of the rows, where these are some of all."""
    return [dims.get(symbol, -1) for symbol, _ in condition.index.terms]


def _is_inside(found: Accesses) -> bool:
    """Whether all that is read lies in its array, chosen or not."""
    return all(number.low >= 0 and number.high < array.elements for array, number in found.loads)
