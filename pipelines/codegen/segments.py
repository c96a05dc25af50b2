"""Index-set splitting: loops in pieces, in each of which it is known what concatenations, paddings and rolls read.

A padded array is read under a condition, which LLVM makes no vectors of. Where the condition depends on one loop's
counter alone, the loop is cut where the condition changes. Pieces that are a good part of the loop are cut further by
the loops inside; the borders of images and the like keep the conditions of inner loops, so that code does not grow with
the power of dimensions.

Source: Griebl, Feautrier, Lengauer, "Index Set Splitting", 2000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hloforge.pipelines.codegen.evaluate import Condition
from hloforge.pipelines.codegen.index import Index, Symbol

# A piece that is less than such a part of its loop is a border.
_BORDER = 8
# Copies of a body, and what they may cost together, in sums: LLVM's time grows with them.
_MOST_COPIES, _MOST_COST = 24, 1600
# Pieces of one loop, each of which keeps only its own part of the body: arrays that are joined.
_MOST_PIECES = 256


@dataclass(frozen=True)
class Segment:
    """Iterations that follow each other.

    Attributes:
        stop: the one after the last.
        is_border: whether loops inside are left whole.
    """

    start: int
    stop: int
    is_border: bool

    @property
    def size(self) -> int:
        return self.stop - self.start


def whole(size: int) -> list[Segment]:
    """A loop in one piece."""
    return [Segment(0, size, False)]


def segments_of(
    loops: Sequence[tuple[Symbol | None, int]],
    conditions: Iterable[Condition],
    cost: int,
    cost_of: Callable[[int, Segment], int],
) -> list[list[Segment]]:
    """The pieces of each of some loops inside each other.

    Args:
        loops: counters and sizes, from the outermost one; None for loops that are left whole.
        cost: of the body, in sums.
        cost_of: what of it a piece of a loop keeps, by the loop's number: a join of many arrays is long, and each of
            them is short.
    """
    cuts: list[set[int]] = [set() for _ in loops]
    numbers = {symbol: number for number, (symbol, _) in enumerate(loops) if symbol is not None}
    for condition in conditions:
        decided = decided_by(condition)
        if decided is not None and decided[0] in numbers:
            symbol, changes = decided
            size = loops[numbers[symbol]][1]
            cuts[numbers[symbol]] |= {cut for cut in changes if 0 < cut < size}
    found = [_cut(size, sorted(own)) for (_, size), own in zip(loops, cuts, strict=True)]
    copies = _copies(found)
    if copies <= _MOST_COPIES and copies * cost <= _MOST_COST:
        return found
    parted = [number for number, segments in enumerate(found) if len(segments) > 1]
    if len(parted) == 1 and copies <= _MOST_PIECES:
        (loop,) = parted
        if sum(cost_of(loop, segment) for segment in found[loop]) <= _MOST_COST:
            return found
    else:
        # Inner loops alone, so that those have vectors at least where outer conditions are loop-invariant.
        found = [whole(size) for _, size in loops[:-1]] + found[-1:]
        copies = _copies(found)
    if copies > _MOST_COPIES or (copies > 1 and copies * cost > _MOST_COST):
        return [whole(size) for _, size in loops]
    return found


def decided_by(condition: Condition) -> tuple[Symbol, tuple[int, ...]] | None:
    """The counter that a condition depends on, and where it may change; None if it depends on several.

    Of a dimension that is several loops it may be the outer one's: ``16 i + j < 64`` is ``i < 4`` for ``j`` up to 15.
    """
    terms = condition.index.terms
    if len(terms) == 1:
        return terms[0][0], _changes(condition, terms[0][1])
    if not terms:
        return None
    symbol, factor = max(terms, key=lambda term: term[1])
    rest = condition.index - Index(((symbol, factor),))
    if factor <= 0 or rest.high - rest.low >= factor:
        return None
    changes = []
    for limit in (0, condition.limit):
        # From here on all are at the limit or above it; one before, all are below.
        change = -((rest.low - limit) // factor)
        if change > 0 and (change - 1) * factor + rest.high >= limit:
            return None
        changes.append(change)
    return symbol, tuple(changes)


def _changes(condition: Condition, factor: int) -> tuple[int, int]:
    """The first counters from which on a condition may be another one: of zero, and of the limit."""
    offset, limit = condition.index.offset, condition.limit
    if factor > 0:
        return -(offset // factor), -(-(limit - offset) // factor)
    # The index falls: it is below the limit, or negative, from here on.
    return (offset - limit) // -factor + 1, offset // -factor + 1


def _cut(size: int, cuts: Sequence[int]) -> list[Segment]:
    edges = [0, *cuts, size]
    return [Segment(start, stop, (stop - start) * _BORDER < size) for start, stop in pairwise(edges)]


def _copies(loops: Sequence[Sequence[Segment]]) -> int:
    """How often the innermost body is written."""
    copies = 1
    for segments in reversed(loops):
        copies = sum(1 if segment.is_border else copies for segment in segments)
    return copies
