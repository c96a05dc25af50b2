"""Sums of many terms: no accumulator of floats adds more than some hundred numbers one after the other.

The error of a sum grows with the additions that follow each other. So a loop of more terms is cut: parts of it begin
with zeros, and what they come to is added to sums of their own, which are cut likewise if there are many parts::

    sums = 0
    for part of 128 terms:
        parts = 0; for each term: parts += term
        sums += parts

A sum of n terms has log(n) / log(128) such levels. Only one addition in 128 is not a term's: this costs 1 or 2 % of a
product's time. Source: N. Higham, "The accuracy of floating point summation" (1993).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value, is_float
from hloforge.pipelines.codegen.products.loops import carrying

# Numbers that an accumulator adds.
LONGEST = 128
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Terms:
    """A loop over terms.

    Attributes:
        count: of its iterations.
        most: how many there are at most.
        steps: what is added to each address, or counter, from one iteration to the next.
    """

    count: Number
    most: int
    steps: tuple[Number, ...]


@dataclass(frozen=True)
class Piece:
    """Iterations of a loop of terms, by its number, so many at once."""

    loop: int
    step: int


def limit_of(kind: str) -> int:
    """How many numbers of an LLVM type an accumulator adds; any number of integers, whose sums are exact."""
    return LONGEST if is_float(kind) else _UNLIMITED


def add_up(
    function: Function,
    loops: Sequence[Terms],
    places: Sequence[Value],
    sums: Sequence[Value],
    body: Callable[[list[Value], list[Value]], Sequence[Value]],
    *,
    weight: int = 1,
    longest: int | None = None,
) -> list[Value]:
    """Add terms to sums by loops inside each other, in chains of limited length.

    Args:
        loops: the outermost one first.
        places: addresses or counters at the first term.
        sums: what terms are added to; if there are several chains, their sums are one more number for each.
        body: given places and sums, the sums with what is there.
        weight: numbers that the body adds to each sum.
        longest: numbers that an accumulator adds; by the sums' type where nothing is said.

    Returns:
        the sums.
    """
    most = limit_of(sums[0].kind) if longest is None else longest
    chains = cut(loops, weight, most)
    return _chain(function, loops, chains, dict(enumerate(one.count for one in loops)), places, sums, body)


def length(loops: Sequence[Terms], weight: int, longest: int) -> int:
    """How many numbers ``add_up`` adds to the sums that it is given."""
    total = 1
    chains = cut(loops, weight, longest)
    if len(chains) == 1:
        total = weight
    steps: dict[int, int] = dict.fromkeys(range(len(loops)), 1)
    for chain in chains[1:]:
        for piece in chain:
            steps[piece.loop] = piece.step
    for piece in chains[0]:
        total *= -(-loops[piece.loop].most // piece.step)
    return total


def cut(loops: Sequence[Terms], weight: int, longest: int) -> list[list[Piece]]:
    """The loops of each chain, the outermost one first."""
    chains: list[list[Piece]] = [[]]
    added = weight
    for number in reversed(range(len(loops))):
        step, count = 1, loops[number].most
        while added * count > longest:
            room = longest // added
            if room > 1:
                part = _part(count, room)
                chains[-1].append(Piece(number, step))
                step, count = step * part, -(-count // part)
            chains.append([])
            added = 1
        if count > 1 or step == 1:
            chains[-1].append(Piece(number, step))
            added *= count
    return [chain[::-1] for chain in reversed(chains)]


def _part(count: int, most: int) -> int:
    """Iterations of a part: a divisor of them all if there is a large one, else so that parts are about equal."""
    found = next((part for part in range(most, most // 2, -1) if count % part == 0), 0)
    return found or -(-count // -(-count // most))


def _chain(
    function: Function,
    loops: Sequence[Terms],
    chains: Sequence[Sequence[Piece]],
    counts: dict[int, Number],
    places: Sequence[Value],
    sums: Sequence[Value],
    body: Callable[[list[Value], list[Value]], Sequence[Value]],
) -> list[Value]:
    chain, *inner = chains

    def over(
        pieces: Sequence[Piece], counts: dict[int, Number], places: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        if not pieces:
            if not inner:
                return list(body(list(places), list(sums)))
            zeros = [function.constant(0, total.kind) for total in sums]
            parts = _chain(function, loops, inner, counts, places, zeros, body)
            return [total + part for total, part in zip(sums, parts, strict=True)]
        piece, *rest = pieces
        level, count = loops[piece.loop], counts[piece.loop]
        with carrying(function, 0, count, [*places, *sums], piece.step) as (loop, number, values):
            left: Number = piece.step
            if isinstance(count, Value) or int(count) % piece.step:
                left = (function.index(count) - number).minimum(piece.step)
            at, totals = values[: len(places)], values[len(places) :]
            added = over(rest, {**counts, piece.loop: left}, at, totals)
            moved = [place + step * piece.step for place, step in zip(at, level.steps, strict=True)]
            loop.next([*moved, *added])
        return loop.results[len(places) :]

    return over(chain, counts, places, sums)
