"""Ranks of a few keys: how many others each one follows. A sort of a few elements moves each one once, to its rank.

n² comparisons by vectors are fewer instructions than any other sort of up to some hundred elements, and none of them is
a branch that depends on the data. Source: D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2, "comparison
counting".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloforge.pipelines.codegen.algorithms.places import each, fold
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, Number, Value, vector_of

# Whether an element follows another one with equal keys, given the place of that one: for all lanes, or for each.
_Ties = Callable[[Value], "Value | bool"]

# Elements whose ranks are counted at once: enough for the additions not to wait for each other.
LANES = 32


def padded(count: int) -> int:
    """How many elements the arrays of keys and ranks of so many elements have room for."""
    return -(-count // LANES) * LANES


def write_ranks(function: Function, keys: Sequence[Array], count: Number, ranks: Array) -> None:
    """Write the rank of each element; equal ones keep their order.

    Args:
        keys: integers without signs, with room for ``padded(count)``; the first counts most.
        ranks: i32, of the same room; what follows the first ``count`` is not meant.
    """
    number = function.index(count)
    kind = vector_of(I32, LANES)
    lanes = Value(function, kind, f"<{', '.join(f'i32 {lane}' for lane in range(LANES))}>")
    with each(function, 0, number, LANES) as first:
        own = [key.at(first, LANES) for key in keys]
        end = (first + LANES).minimum(number)

        def follows(place: Value) -> Value:
            return lanes > (place - first).as_(I32)

        total = function.constant(0, kind)
        total = _counted(keys, own, (function.index(0), first), total, lambda _: True)
        total = _counted(keys, own, (first, end), total, follows)
        total = _counted(keys, own, (end, number), total, lambda _: False)
        ranks.put(total, first)


def _counted(
    keys: Sequence[Array], own: Sequence[Value], others: tuple[Value, Value], total: Value, ties: _Ties
) -> Value:
    """The numbers of other elements that precede each of some elements, added to a total."""

    def count(place: Value, before: list[Value]) -> list[Value]:
        flags = _precedes([key.at(place) for key in keys], own, ties(place))
        return [before[0] + flags.as_(I32, signed=False)]

    return fold(total.function, *others, [total], count)[0]


def _precedes(other: Sequence[Value], own: Sequence[Value], ties: Value | bool) -> Value:
    (first, *others), (second, *rest) = other, own
    first = first.function.spread(first, LANES)
    if not others and isinstance(ties, bool):
        return first.compare("ule" if ties else "ult", second)
    follows = ties if not others else _precedes(others, rest, ties)
    assert isinstance(follows, Value)
    return first.compare("ult", second) | (first.equals(second) & follows)
