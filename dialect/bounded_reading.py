"""Reading files and streams that may have no end: ``/dev/zero``, a pipe whose writer goes on, a file full of holes.

A pipe or device ends at SIZE_LIMIT bytes or a quarter of the machine's memory, and a file, whose size is known, at the
memory that there is, unless somebody names another limit. A compilation's deadline holds for waiting as well.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from hloforge.dialect import budget

SIZE_LIMIT = 2 << 30
_CHUNK = 1 << 20
# Seconds between two looks at the deadline: poll() knows nothing of one that comes from elsewhere.
_PATIENCE = 0.2
_limit: ContextVar[int | None] = ContextVar("_limit", default=None)


class TooLargeError(OSError):
    """What is read has more bytes than the limit."""

    hint = "raise the limit: size_limit= (--size-limit)"

    def __init__(self, limit: int) -> None:
        size = f"{limit} bytes" if limit < 1 << 20 else f"{limit / (1 << 20):.0f} MiB"
        super().__init__(errno.EFBIG, f"it has more than {size}")


@contextmanager
def size_limit(size: int | None) -> Iterator[None]:
    """Let nothing that is read meanwhile have more bytes than this; None changes nothing."""
    if size is None:
        yield
        return
    token = _limit.set(size)
    try:
        yield
    finally:
        _limit.reset(token)


def read_path(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, a pipe or a device.

    Raises:
        TooLargeError: there are more than the limit.
        OSError: it is a folder or a socket, or cannot be read.
    """
    # A pipe that nobody writes to is opened all the same, and waited for below.
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(number, "rb", buffering=0) as file:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            return bytes(_read(file, _limit_of_streams(), number))
        limit = _limit.get() or _memory()
        if status.st_size > limit:
            raise TooLargeError(limit)
        # A file of /proc says that it is empty, and one that is being written grows.
        return bytes(_read(file, limit, None))


def read_stream(stream: Any) -> Any:
    """All of a stream, bytes or text.

    Raises:
        TooLargeError: there is more than the limit.
    """
    number = None
    if budget.remaining() is not None:
        with suppress(OSError, ValueError, AttributeError):  # it is in memory
            number = stream.fileno()
    return _read(stream, _limit_of_streams(), number)


def _limit_of_streams() -> int:
    return _limit.get() or min(SIZE_LIMIT, _memory() // 4)


def _read(stream: Any, limit: int, number: int | None) -> Any:
    """All of a stream; ``number`` is that of a descriptor that is waited for before each piece."""
    take = getattr(stream, "read1", stream.read)
    pieces, size = [], 0
    while True:
        _wait(number)
        piece = take(min(_CHUNK, limit + 1 - size))
        if piece is None:
            continue  # another reader was faster
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise TooLargeError(limit)
        if not piece:
            return piece[:0].join(pieces)


def _wait(number: int | None) -> None:
    """Wait until there is something, or the writers are gone. Raises OverBudgetError if a deadline comes before."""
    if number is None or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(number, select.POLLIN)
    while not poll.poll(_PATIENCE * 1000):
        budget.check()


def _memory() -> int:
    """Bytes of the machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize
