"""The server of readers, waited for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hloforge.dialect.forked import UNLIMITED, StoppedError
from hloforge.importers.guard_server import GoneError, ReaderServer, reader_server


def wait_until_ready(server: ReaderServer) -> int:
    """Start a server, and wait for it; the number of a child of it, which has ended then."""
    end = time.monotonic() + 60
    while True:
        server.start()
        try:
            number: int = server.ask(os.getpid, (), 60, UNLIMITED)
        except GoneError:
            assert time.monotonic() < end
            time.sleep(0.02)
        else:
            return number


@contextmanager
def served() -> Iterator[list[int]]:
    """Have the server of this process ready; yields the count of its answers meanwhile."""
    wait_until_ready(reader_server())
    count, ask = [0], ReaderServer.ask

    def counted(*arguments: Any, **named: Any) -> Any:
        try:
            result = ask(*arguments, **named)
        except GoneError:
            raise
        except (Exception, StoppedError):
            count[0] += 1
            raise
        count[0] += 1
        return result

    with mock.patch.object(ReaderServer, "ask", counted):
        yield count
