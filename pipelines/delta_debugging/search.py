"""Delta debugging: the smallest part of a list for which something still holds.

Source: A. Zeller and R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions on Software
Engineering 28 (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")


def minimized(items: Sequence[Item], holds: Callable[[list[Item]], bool]) -> list[Item]:
    """A part of ``items``, in order, for which ``holds``, and for none that lacks one item more.

    Args:
        holds: true of ``items``; an empty part is never asked about. It may raise to end the search.
    """
    found = list(items)
    parts = 2
    while len(found) > 1:
        chunks = _split(found, min(parts, len(found)))
        smaller = next((chunk for chunk in chunks if holds(chunk)), None)
        if smaller is not None:
            found, parts = smaller, 2
            continue
        smaller = next((rest for rest in _complements(chunks) if holds(rest)), None) if parts > 2 else None
        if smaller is not None:
            found, parts = smaller, max(parts - 1, 2)
            continue
        if parts >= len(found):
            break
        parts = min(2 * parts, len(found))
    return found


def _split(items: list[Item], parts: int) -> list[list[Item]]:
    edges = [len(items) * number // parts for number in range(parts + 1)]
    return [items[low:high] for low, high in pairwise(edges)]


def _complements(chunks: list[list[Item]]) -> list[list[Item]]:
    return [
        [item for other, chunk in enumerate(chunks) if other != number for item in chunk]
        for number in range(len(chunks))
    ]
