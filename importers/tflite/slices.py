"""The elements that a STRIDED_SLICE reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.importers.tflite.node import Node


def strided_places(
    node: Node, dims: Sequence[int], begin: list[int], end: list[int], strides: list[int]
) -> tuple[Any, ...]:
    """The index that numpy would take: slices, numbers for axes that vanish, None for new ones, an ellipsis.

    Source: TensorFlow "strided_slice": each mask has a bit for each entry of ``begin``.
    """
    masks = {name: node.option(f"{name}Mask") for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    offset = bool(node.option("Offset"))
    places: list[Any] = []
    for bit in range(len(begin)):
        here = 1 << bit
        if masks["Ellipsis"] & here:
            places.append(Ellipsis)
        elif masks["NewAxis"] & here:
            places.append(None)
        elif masks["ShrinkAxis"] & here:
            places.append(begin[bit])
        else:
            start = None if masks["Begin"] & here else begin[bit]
            stop = None if masks["End"] & here else end[bit] + (begin[bit] if offset else 0)
            places.append(slice(start, stop, strides[bit]))
    if len(places) > len(dims) + sum(place is None or place is Ellipsis for place in places):
        raise ValueError(f"{len(places)} slices of {len(dims)} dimensions")
    return tuple(places)


def whole_or_single(node: Node, rank: int) -> tuple[bool, ...] | None:
    """For each entry of ``begin``, whether it takes one element of its axis; the others take all.

    None if some do neither.
    """
    count = node.dims(1)[0]
    if node.option("EllipsisMask") or node.option("NewAxisMask") or count > rank:
        return None
    single = tuple(bool(node.option("ShrinkAxisMask") & 1 << bit) for bit in range(count))
    whole = node.option("BeginMask") & node.option("EndMask")
    is_plain = all(shrinks or whole & 1 << bit for bit, shrinks in enumerate(single))
    return single if is_plain and set(node.integers(3)) == {1} else None
