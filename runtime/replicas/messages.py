"""Arrays as the bytes of messages between processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.runtime.replicas.communicator import Array, Arrays
from hloforge.runtime.session.arrays import ALIGNMENT


def bytes_of(array: Array) -> Array:
    """The bytes of a row-major array."""
    return array.reshape(-1).view(np.uint8)


def described(arrays: Arrays) -> list[tuple[str, list[int]]]:
    """Types and sizes of arrays, for the head of a message."""
    return [(element_type(array.dtype).name, list(array.shape)) for array in arrays]


def empty(name: str, sizes: Sequence[int]) -> Array:
    """An array of a type and sizes in memory that IREE can use as it is."""
    dtype = element_type(name).dtype
    count = int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(sizes)
