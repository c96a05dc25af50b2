"""Memory of results that is used again once nobody refers to them.

The system hands memory out page by page, when each is first written: up to 0.3 ms a megabyte, longer than many kernels
take to write it. The C library keeps small blocks, and gives large ones back as soon as they are free. So large results
lie in blocks that come back here.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from hloforge.runtime.data.aligned import ALIGNMENT, aligned_bytes

# Bytes of a result from which on the C library asks the system, and of all blocks that wait for another result.
LEAST, MOST = 1 << 17, 1 << 28
# Bytes of a result from which on JAX shows it instead of copying it, if its address suits.
_ALIGNED = 1 << 14
_SIZES = 4096


class ResultMemory:
    """Blocks of memory by their sizes, for any number of threads.

    Args:
        most: bytes of the blocks that wait; sizes that have waited longest go first.
    """

    def __init__(self, most: int) -> None:
        self._most, self._waiting = most, 0
        self._free: OrderedDict[int, list[np.ndarray[Any, Any]]] = OrderedDict()
        # The same thread may come back in: freeing a block can free an array.
        self._lock = threading.RLock()

    @property
    def waiting(self) -> int:
        """Bytes of the blocks that wait."""
        return self._waiting

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """An array whose elements are whatever was in memory, writable and contiguous; its address is a multiple of 64.

        Raises:
            MemoryError: the system has no more.
        """
        size = math.prod(shape) * dtype.itemsize
        with self._lock:
            block = self._taken(size)
        if block is None:
            block = aligned_bytes(size)
        shown = _shown(size).from_buffer(block)
        shown.pool, shown.block = self, block
        return np.ndarray(shape, dtype, shown)

    def take_back(self, block: np.ndarray[Any, Any]) -> None:
        """Let a block that no array shows any more wait for another result."""
        dropped = []  # freed after the lock
        with self._lock:
            self._free.setdefault(block.nbytes, []).append(block)
            self._waiting += block.nbytes
            while self._waiting > self._most and self._free:
                dropped.append(self._taken(next(iter(self._free))))

    def forked(self) -> None:
        """Go on in a child process: a thread that does not exist there may have held the lock."""
        self._lock = threading.RLock()

    def _taken(self, size: int) -> np.ndarray[Any, Any] | None:
        """A block that waited; None if there is none of this size."""
        blocks = self._free.get(size)
        if not blocks:
            return None
        block = blocks.pop()
        self._waiting -= size
        if not blocks:
            self._free.pop(size, None)
        return block


def maker(shape: Sequence[int], dtype: np.dtype[Any]) -> Callable[[], np.ndarray[Any, Any]]:
    """What makes an array for a result, not written yet, of memory that suits its size."""
    size = math.prod(shape) * dtype.itemsize
    if size < _ALIGNED:
        return partial(np.empty, shape, dtype)
    return partial(RESULTS.empty, shape, dtype) if size >= LEAST else partial(_aligned, size, shape, dtype)


def _aligned(size: int, shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    room = np.empty(size + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, room, -room.__array_interface__["data"][0] % ALIGNMENT)


@lru_cache(_SIZES)
def _shown(size: int) -> Any:
    """A type of so many bytes, whose objects give their block back when nobody refers to them."""
    return type("Shown", (ctypes.c_char * size,), {"__del__": _give_back})


def _give_back(shown: Any) -> None:
    shown.pool.take_back(shown.block)


RESULTS = ResultMemory(MOST)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RESULTS.forked)
