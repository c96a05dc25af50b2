"""Memory that begins where processors load whole vectors from."""

from __future__ import annotations

from typing import Any

import numpy as np

# Bytes of a vector, and of a line of the cache.
ALIGNMENT = 64


def aligned_bytes(size: int) -> np.ndarray[Any, Any]:
    """So many bytes of new memory, whose address ``ALIGNMENT`` divides."""
    room = np.empty(size + ALIGNMENT, np.uint8)
    return room[-room.ctypes.data % ALIGNMENT :][:size]


def aligned(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bytes at an address that ``ALIGNMENT`` divides: the given ones, or a copy."""
    if data.ctypes.data % ALIGNMENT == 0:
        return data
    copied = aligned_bytes(data.size)
    copied[:] = data
    return copied
