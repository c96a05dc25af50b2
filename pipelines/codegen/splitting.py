"""Dimensions as several loops: a reshape leaves quotients, which counters of their own replace.

``repeat``, ``kron``, pixel shuffles and the like read ``x[i / 5]`` and ``y[i % 5]`` in a loop over ``i``. As two loops,
``i = 5 j + k``, they read ``x[j]`` and ``y[k]``: no division, and the inner loop reads memory in its order. Loops that
nobody needs apart become one again (``groups.grouped``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.evaluate import Condition, Place
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.segments import decided_by

Sizes = tuple[tuple[int, ...], ...]


def finer(place: Place, shape: Sequence[int], found: Accesses) -> Sizes | None:
    """The loops of each dimension, where quotients of its counter divide it; None if there are none.

    Args:
        place: of counters, one for each dimension of a shape.
        found: what is read there.
    """
    divisors: dict[Symbol, set[int]] = {}
    for quotient, divisor in _quotients(found.uses):
        if len(quotient.terms) == 1 and quotient.terms[0][1] == 1 and quotient.offset == 0:
            divisors.setdefault(quotient.terms[0][0], set()).add(divisor)
    for condition in found.conditions:
        # Where it changes another loop begins, so that the condition is that loop's alone.
        if len(condition.index.terms) == 1 and condition.index.terms[0][1] == 1 and condition.index.offset == 0:
            divisors.setdefault(condition.index.terms[0][0], set()).add(condition.limit)
    sizes = tuple(
        _chain(size, divisors.get(index.terms[0][0], ()) if index.terms else ())
        for index, size in zip(place, shape, strict=True)
    )
    return sizes if any(len(parts) > 1 for parts in sizes) else None


def is_simpler(before: Accesses, after: Accesses) -> bool:
    """Whether fewer quotients are computed, and no loop that conditions cut is lost."""
    if sum(map(_is_cut, after.conditions)) < sum(map(_is_cut, before.conditions)):
        return False
    return len(set(_quotients(after.uses))) < len(set(_quotients(before.uses)))


def _is_cut(condition: Condition) -> bool:
    return decided_by(condition) is not None


def joined(place: Sequence[Index], sizes: Sizes) -> Place:
    """The place in the dimensions that loops were made of."""
    given = iter(place)
    return tuple(places.linear([next(given) for _ in parts], parts) for parts in sizes)


def _chain(size: int, divisors: Iterable[int]) -> tuple[int, ...]:
    """Loops from the outermost one: each divisor that divides what the next larger one leaves."""
    parts: list[int] = []
    for divisor in sorted(divisors, reverse=True):
        if size % divisor == 0 and 1 < divisor < size:
            parts.append(size // divisor)
            size = divisor
    return (*parts, size)


def _quotients(uses: Iterable[Index]) -> Iterator[tuple[Index, int]]:
    for index in uses:
        for symbol, _ in index.terms:
            if symbol.quotient is not None:
                yield symbol.quotient
                yield from _quotients([symbol.quotient[0]])
