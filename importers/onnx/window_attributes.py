"""Attributes of windows over spatial dimensions, which convolutions and pools share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.importers.onnx.node import Node


@dataclass(frozen=True)
class Windows:
    """How a window moves; a list has an entry for each spatial dimension.

    Attributes:
        sizes: of the window.
        pads: (low, high) around the input.
        places: how many positions the window has.
    """

    sizes: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[tuple[int, int]]
    places: list[int]


def windows_of(node: Node, spatial: Sequence[int], sizes: Sequence[int]) -> Windows:
    """The windows of a node with ``strides``, ``dilations``, ``pads``, ``auto_pad`` and ``ceil_mode``.

    Source: ONNX "Conv", "MaxPool": with ``ceil_mode`` a last window may reach over the edge, if it begins before it.
    """
    rank = len(spatial)
    strides = list(node.attribute("strides") or [1] * rank)
    dilations = list(node.attribute("dilations") or [1] * rank)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    auto = node.attribute("auto_pad", "NOTSET")
    given = list(node.attribute("pads") or [0] * (2 * rank))
    pads, places = [], []
    for d in range(rank):
        low, high = given[d], given[rank + d]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-spatial[d] // strides[d])
            missing = max(0, (count - 1) * strides[d] + reach[d] - spatial[d])
            low, high = missing // 2, missing - missing // 2
            if auto == "SAME_LOWER":
                low, high = high, low
        elif auto == "VALID":
            low = high = 0
        room = spatial[d] + low + high - reach[d]
        count = room // strides[d] + 1
        if node.attribute("ceil_mode", 0) and auto == "NOTSET":
            count = -(-room // strides[d]) + 1
            if (count - 1) * strides[d] >= spatial[d] + low:
                count -= 1
        pads.append((low, high))
        places.append(max(count, 0))
    return Windows(list(sizes), strides, dilations, pads, places)
