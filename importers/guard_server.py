"""The process that keeps a child ready for the next program (``guard_worker.py``), and requests to it.

A fork of this process would copy its page tables, and both would copy the pages that they write to: 10 ms in a process
that has compiled something. The server has the readers loaded and little else, and its child has run them once before
it is asked: a program takes half a millisecond there. One server answers all threads of a process and the processes
forked from it. It ends when the last of them has closed its socket, and its children end with it. Linux alone has it.
"""

from __future__ import annotations

import functools
import os
import pickle
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hloforge.dialect.forked import AVAILABLE, StoppedError, is_exhausted, value_of

# Set to 0, it has each program read by a fork of this process; commands do so, which read one program.
VARIABLE = "HLOFORGE_READER_SERVER"
# Where functions are that the server's children have, and nothing that a process changes.
READERS = "hloforge.importers.native"
_WORKER = "hloforge.importers.guard_worker"
# Servers that end before they are ready, one after the other, until there is no further one.
_TRIES = 3
# numpy has threads otherwise, which forked children lack.
_ALONE = {"OPENBLAS_NUM_THREADS": "1"}
LENGTH, STATUS = struct.Struct("<Q"), struct.Struct("<i")
# Bytes of what the server says when it is ready: where its code is. Bytes of a function's name.
_GREETING, NAME = 4096, 256


class GoneError(Exception):
    """There is no server, or it ended before it answered."""


class ReaderServer:
    """The end of this process. Use ``reader_server``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A number, because Python warns of objects that are still open when it ends.
        self._control: int | None = None
        self._tries, self._is_ready = _TRIES, False
        self._processes: list[int] = []

    def start(self) -> None:
        """Start the process, unless it runs; it is ready in a third of a second, and nobody waits for that."""
        with self._lock:
            if self._control is None and self._tries:
                self._tries -= 1
                self._processes = [process for process in self._processes if _is_alive(process)]
                with suppress(OSError):
                    self._control, process = _started()
                    self._processes.append(process)

    def ask(
        self,
        function: Callable[..., Any],
        arguments: tuple[object, ...],
        seconds: float,
        memory: int,
        *,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> Any:
        """``function(*arguments)``, computed by a child that has read nothing before.

        Args:
            function: of ``READERS``, or one of Python's own.
            seconds: that it may take.
            memory: bytes that it may take beside what the child has, or UNLIMITED.
            meanwhile: done here while the child works.

        Raises:
            GoneError: no server is ready.
            StoppedError: it took more than it may, or crashed.
            Exception: what the function raised.
        """
        end = time.monotonic() + seconds
        request = pickle.dumps((function, arguments, memory), pickle.HIGHEST_PROTOCOL)
        with ExitStack() as stack:
            connection, status, log = self._connected(function.__name__, stack)
            answer = _answered(connection, request, end, meanwhile)
            if answer is None:
                found = _status(status, end)
                log.seek(0)
                text = log.read().decode("utf-8", "replace")
                raise StoppedError("memory" if is_exhausted(text) else "crash", found, text)
        return value_of(answer)

    def _connected(self, name: str, stack: ExitStack) -> tuple[socket.socket, int, BinaryIO]:
        """A connection to a child; a pipe for its status, with which the child ends when it is closed; and what the
        child says on its output.

        Args:
            name: of the function; the child after this one will be prepared for it.

        Raises:
            GoneError: no server is ready.
        """
        self._check_ready()
        try:
            # In memory: a full disk, or no folder to write to, is no reason to refuse a program.
            log = stack.enter_context(os.fdopen(os.memfd_create("hloforge-log"), "w+b"))
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            reader, writer = os.pipe()
            stack.callback(os.close, reader)
        except OSError:
            raise GoneError from None
        with theirs, self._lock, os.fdopen(writer, "wb", buffering=0):
            if self._control is None:
                raise GoneError
            control = socket.socket(fileno=self._control)
            try:
                given = [theirs.fileno(), log.fileno(), writer]
                socket.send_fds(control, [name.encode()], given, socket.MSG_DONTWAIT)
            except BlockingIOError:
                raise GoneError from None
            except OSError:
                # The next program but one has another server.
                self._close()
                raise GoneError from None
            finally:
                control.detach()
        return ours, reader, log

    def is_ready(self) -> bool:
        """Whether it answers now, or there is none to wait for."""
        try:
            self._check_ready()
        except GoneError:
            return self._control is None
        return True

    def _check_ready(self) -> None:
        """Raises GoneError if the process does not run, or is not ready yet."""
        if self._is_ready:
            return
        with self._lock:
            if self._control is None:
                raise GoneError
            control = socket.socket(fileno=self._control)
            try:
                # What it says stays there, for the processes that are forked from this one.
                said = control.recv(_GREETING, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                raise GoneError from None
            except OSError:
                said = b""
            finally:
                # Closed by ``_close`` alone.
                control.detach()
            if said != greeting():
                # It has ended, or has other code, because this process finds its modules elsewhere.
                self._close()
                raise GoneError
            self._is_ready, self._tries = True, _TRIES

    def after_fork(self) -> None:
        """Go on in a forked child, where no other thread will ever let go of what it held."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let the process end, if it runs."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._control is not None:
            os.close(self._control)
        self._control, self._is_ready = None, False


def _answered(connection: socket.socket, request: bytes, end: float, meanwhile: Callable[[], object]) -> bytes | None:
    """The answer to a request; None if the child ends before. Raises StoppedError if it takes too long."""
    try:
        connection.settimeout(_left(end))
        connection.sendall(LENGTH.pack(len(request)))
        connection.sendall(request)
        meanwhile()
        (length,) = LENGTH.unpack(received(connection, LENGTH.size, end))
        return received(connection, length, end)
    except TimeoutError:
        raise StoppedError("time") from None
    except (OSError, EOFError):
        return None


def received(connection: socket.socket, length: int, end: float | None = None) -> bytes:
    """So many bytes. Raises TimeoutError, OSError, and EOFError where the other side has gone."""
    data = bytearray(length)
    view = memoryview(data)
    while view:
        if end is not None:
            connection.settimeout(_left(end))
        taken = connection.recv_into(view)
        if not taken:
            raise EOFError
        view = view[taken:]
    return bytes(data)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _status(reader: int, end: float) -> int:
    """How a child has ended, as of ``waitpid``. Raises GoneError if its server does not know."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    if not poll.poll(max(end - time.monotonic(), 1.0) * 1000):
        raise GoneError
    said = os.read(reader, STATUS.size)
    if len(said) < STATUS.size:
        raise GoneError
    (status,) = STATUS.unpack(said)
    return int(status)


def greeting() -> bytes:
    """What a server says when it is ready."""
    return os.fsencode(Path(__file__).resolve())[-_GREETING:]


def serves(function: Callable[..., Any]) -> bool:
    """Whether the server's children have this very function."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if module != READERS and module not in sys.builtin_module_names:
        return False
    return getattr(sys.modules.get(module), name, None) is function


@functools.cache
def reader_server() -> ReaderServer:
    """The server of this process."""
    started = ReaderServer()
    os.register_at_fork(after_in_child=started.after_fork)
    return started


def is_wanted() -> bool:
    """Whether there can be a server here, and nobody has turned it off."""
    return AVAILABLE and os.environ.get(VARIABLE) != "0"


def _is_alive(process: int) -> bool:
    """Whether a server runs; what is left of one that has ended goes."""
    try:
        return os.waitpid(process, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False  # this process is a fork of the one that started it, or somebody waits for all processes


def _started() -> tuple[int, int]:
    """This process's end of the socket, and the number of the process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        os.set_inheritable(theirs.fileno(), True)
        command = [sys.executable, "-P", "-m", _WORKER, str(theirs.fileno())]
        silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        # In a group of its own, because Ctrl-C is none of its business: it ends with its socket.
        process = os.posix_spawn(command[0], command, os.environ | _ALONE, file_actions=silent, setpgroup=0)
    return ours.detach(), process
