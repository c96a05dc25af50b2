"""Which dimensions are one loop: adjacent ones, where every array is read as if they were one (loop coalescing)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.segments import decided_by
from hloforge.pipelines.codegen.steps import Nest


@dataclass(frozen=True)
class Group:
    """Adjacent dimensions that are one loop.

    Attributes:
        dims: in order.
        sizes: of these.
    """

    dims: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.sizes)


def groups_of(nest: Nest, memory: Callable[[Array], bool]) -> list[Group]:
    """The loops of a nest, from the outermost to the innermost one in memory's order."""
    place, found = nest.analysis(memory)
    decided = (decided_by(condition) for condition in found.conditions if len(condition.index.terms) > 1)
    return grouped(nest.shape, place, found.uses, nest.dims, {one[0] for one in decided if one is not None})


def grouped(
    shape: Sequence[int], place: Place, uses: Sequence[Index], reduced: Sequence[int], apart: Set[Symbol] = frozenset()
) -> list[Group]:
    """The loops over the places of a shape.

    Args:
        place: of counters.
        uses: what the code computes of these.
        reduced: dimensions of which loops have others apart.
        apart: counters of loops that are cut.
    """
    factors = [factors_of(index) for index in uses]
    groups: list[Group] = []
    for d, size in enumerate(shape):
        if size == 1:
            continue
        last = groups[-1] if groups else None
        if last and (last.dims[-1] in reduced) == (d in reduced):
            outer, inner = (place[e].terms[0][0] for e in (last.dims[-1], d))
            if outer not in apart and all(
                found.get(outer, 0) == found.get(inner, 0) * size for one in factors for found in one
            ):
                groups[-1] = Group((*last.dims, d), (*last.sizes, size))
                continue
        groups.append(Group((d,), (size,)))
    return groups


def factors_of(index: Index) -> list[dict[Symbol, int]]:
    """The factors of symbols in an expression, and in those inside its quotients."""
    found = [dict(index.terms)]
    for symbol, _ in index.terms:
        if symbol.quotient is not None:
            found += factors_of(symbol.quotient[0])
    return found
