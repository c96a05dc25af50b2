"""A message that ends a process with a status of its choice, whatever its threads do.

Native code may hold Python's lock for minutes. No Python runs then, so that no handler of a signal can end the process,
and SIGKILL makes its status 137. A message queue of POSIX has the C library start a thread when a message comes, which
calls a C function: ``_exit``, with the status.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from uuid import uuid4

_SIGEV_THREAD = 2


class _Attributes(ctypes.Structure):
    """``struct mq_attr``."""

    _fields_ = (
        ("flags", ctypes.c_long),
        ("most_messages", ctypes.c_long),
        ("most_bytes", ctypes.c_long),
        ("messages", ctypes.c_long),
        ("reserved", ctypes.c_long * 4),
    )


class _Notice(ctypes.Structure):
    """``struct sigevent``, which has 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("reserved", ctypes.c_char * 32),
    )


class RemoteExit:
    """Ends the process that has called ``listen``, from any other that was forked of it."""

    def __init__(self, status: int) -> None:
        self.status = status
        self._queue = -1
        if not sys.platform.startswith("linux"):
            return
        name, flags = f"/hloforge-{uuid4().hex}".encode(), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        # Some sandboxes have no queues.
        with suppress(AttributeError, OSError):
            library = ctypes.CDLL(None)
            attributes = _Attributes(most_messages=1, most_bytes=1)
            self._queue = library.mq_open(name, flags, ctypes.c_uint(0o600), ctypes.byref(attributes))
            library.mq_unlink(name)

    def listen(self) -> None:
        """Let a message end this process."""
        if self._queue < 0:
            return
        library = ctypes.CDLL(None)
        end = ctypes.cast(library._exit, ctypes.c_void_p).value
        notice = _Notice(value=self.status, kind=_SIGEV_THREAD, function=end)
        library.mq_notify(self._queue, ctypes.byref(notice))

    def send(self) -> None:
        """End the process that listens; nothing happens where there are no queues."""
        if self._queue >= 0:
            ctypes.CDLL(None).mq_send(self._queue, b"1", ctypes.c_size_t(1), 0)
