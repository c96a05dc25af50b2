"""Let Python collect garbage seldom while a program is compiled.

Passes make and drop many objects that are in no cycle. Their number alone makes Python search all objects of the
process for cycles now and then: 30 to 40 of 330 ms for a multiplication in a process with 100,000 objects, which a
framework exceeds.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Python's own is 700 (2,000 from 3.13 on) objects more than were freed. So many take some 40 MB; the modules of a
# compilation are 140,000 objects, which take 100 ms to search.
_SELDOM = 200_000

_lock = threading.Lock()
# What to return to, while compilations run: one entry for each.
_usual: list[tuple[int, int, int]] = []


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage after ``_SELDOM`` new objects until the last such block of all threads ends."""
    with _lock:
        _usual.append(_usual[-1] if _usual else gc.get_threshold())
        if gc.get_threshold()[0]:  # 0 is the user's "never"
            gc.set_threshold(max(_SELDOM, _usual[-1][0]), *_usual[-1][1:])
    try:
        yield
    finally:
        with _lock:
            usual = _usual.pop()
            if not _usual:
                gc.set_threshold(*usual)
