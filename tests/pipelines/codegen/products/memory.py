"""Arrays at the end of memory: a byte read or written behind them ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

_PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_SENTINEL = 0xA5


class Guarded:
    """Bytes between two pages that nobody may touch; as near as possible to one of them.

    Args:
        at_end: whether the last byte is next to a page, else the first one is.
    """

    def __init__(self, size: int, *, at_end: bool) -> None:
        pages = -(-max(size, 1) // _PAGE)
        self._map = mmap.mmap(-1, (pages + 2) * _PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for page in (start, start + (pages + 1) * _PAGE):
            if _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        room = pages * _PAGE
        self._room = np.frombuffer((ctypes.c_char * room).from_address(start + _PAGE), np.uint8)
        self._room[:] = _SENTINEL
        first = room - size if at_end else 0
        self._first, self._size = first, size

    def array(self, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy of an array here."""
        own = self._room[self._first : self._first + like.nbytes].view(like.dtype).reshape(like.shape)
        own[...] = like
        return own

    @property
    def is_intact(self) -> bool:
        """Whether the bytes beside the array are as they were."""
        before, after = self._room[: self._first], self._room[self._first + self._size :]
        return bool((before == _SENTINEL).all() and (after == _SENTINEL).all())
