"""Padding around windows that move over spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence

# Source: Padding of schema.fbs.
SAME, VALID = 0, 1


def pads_of(padding: int, sizes: Sequence[int], reach: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """(low, high) around each dimension; of an odd padding the larger half is after.

    Args:
        reach: the extent of the window with its dilation.
    """
    if padding == VALID:
        return [(0, 0)] * len(sizes)
    pads = []
    for size, extent, stride in zip(sizes, reach, strides, strict=False):
        count = -(-size // stride)
        missing = max(0, (count - 1) * stride + extent - size)
        pads.append((missing // 2, missing - missing // 2))
    return pads
