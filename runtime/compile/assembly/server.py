"""A process that has IREE's compiler warm (``worker.py``), and requests to its children.

XLA's partitioner has another one (``compile/partition.py``). One server answers all threads of a process and the
processes forked from it. It ends when the last of them has closed its socket, and its children end with it. Linux alone
has it: elsewhere forks are unsafe or missing.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hloforge.dialect import budget
from hloforge.dialect.forked import AVAILABLE
from hloforge.runtime.compile.assembly.messages import receive, send

# Set to 0, it has each program compiled by a process of ``iree-compile`` alone; set to "loud", the server and its
# children say on standard error what goes wrong.
VARIABLE = "HLOFORGE_COMPILER_SERVER"
# Servers that end before they answer, one after the other, until there is no further one.
_TRIES = 3
# numpy, which the compiler's bindings import, has threads otherwise, which forked children lack.
_ALONE = {"OPENBLAS_NUM_THREADS": "1"}
_WORKER = "hloforge.runtime.compile.assembly.worker"


class GoneError(Exception):
    """A child or the server has ended, or the time for it has."""


def _compiler() -> tuple[str, ...]:
    return _WORKER, str(library())


class Server:
    """The end of this process. Use ``server``.

    Args:
        worker: its module and arguments; the number of its socket stands between them.
    """

    def __init__(self, worker: Callable[[], Sequence[str]] = _compiler) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        # A number, because Python warns of objects that are still open when it ends.
        self._control: int | None = None
        self._tries = _TRIES

    def start(self) -> None:
        """Start the process, unless it runs; it is ready in a third of a second, and requests wait for that."""
        with self._lock:
            if self._control is None:
                self._control = _started(self._worker())

    def request(self, kind: str, source: bytes, fields: Mapping[str, object]) -> Request:
        """Ask a child of its own.

        Raises:
            GoneError: there is no server.
        """
        if not self._tries:
            raise GoneError
        self.start()
        try:
            request = Request(self._connected(), kind, source, fields)
        except (OSError, GoneError):
            if budget.remaining() != 0:
                self.close()
                # The next program has another one, but not for ever where none can run.
                self._tries -= 1
            raise GoneError from None
        self._tries = _TRIES
        return request

    def _connected(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            if self._control is None:
                raise GoneError
            control = socket.socket(fileno=self._control)
            try:
                socket.send_fds(control, [b"C"], [theirs.fileno()])
            finally:
                control.detach()
        return ours

    def after_fork(self) -> None:
        """Go on in a forked child, where no other thread will ever let go of what it held."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let the process end, if it runs."""
        with self._lock:
            if self._control is not None:
                os.close(self._control)
            self._control = None


class Request:
    """A child that answers; used as a context, it does not outlive the block.

    Attributes:
        number: of the child's process.
    """

    def __init__(self, connection: socket.socket, kind: str, source: bytes, fields: Mapping[str, object]) -> None:
        self._connection = connection
        # It waits for the request meanwhile, so that the number is its own.
        self.number = int(self.receive()[0])
        self._process = os.pidfd_open(self.number)
        self.send([json.dumps({"kind": kind, **fields}).encode(), source])

    def __enter__(self) -> Request:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self.end()
        os.close(self._process)

    def end(self) -> None:
        """End the child, which may be anywhere in native code."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def fileno(self) -> int:
        """Of its connection, for ``select``."""
        return self._connection.fileno()

    def send(self, blobs: Sequence[bytes]) -> None:
        """Send a message. Raises GoneError."""
        try:
            send(self._connection, blobs)
        except OSError:
            raise GoneError from None

    def receive(self) -> list[bytes]:
        """Wait for a message, until the budget is spent. Raises GoneError."""
        self._connection.settimeout(budget.remaining())
        try:
            return receive(self._connection)
        except (OSError, EOFError):
            raise GoneError from None


def wait(requests: Iterable[Request]) -> list[Request]:
    """Those that say something, as soon as one does. Raises GoneError if there is no time left for that."""
    with selectors.DefaultSelector() as selector:
        for request in requests:
            selector.register(request, selectors.EVENT_READ, request)
        found = selector.select(budget.remaining())
    if not found:
        raise GoneError
    return [key.data for key, _ in found]


@functools.cache
def server() -> Server:
    """The server of this process."""
    return kept(Server())


def kept(started: Server) -> Server:
    """A server that forks of this process ask as well."""
    if AVAILABLE:
        os.register_at_fork(after_in_child=started.after_fork)
    return started


def is_wanted() -> bool:
    """Whether there can be servers here, and nobody has turned them off."""
    return AVAILABLE and os.environ.get(VARIABLE) != "0"


def is_available() -> bool:
    """Whether there can be a server here."""
    return is_wanted() and library() is not None


def prepare() -> None:
    """Have the server ready by the time that it is asked."""
    if is_available():
        with suppress(OSError):
            server().start()


@functools.cache
def library() -> Path | None:
    """The compiler as a library, found without loading it."""
    found = importlib.util.find_spec("iree.compiler")
    folders = found.submodule_search_locations if found else None
    paths = (Path(folder, "_mlir_libs", "libIREECompiler.so") for folder in folders or ())
    return next((path for path in paths if path.exists()), None)


def _started(worker: Sequence[str]) -> int:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        os.set_inheritable(theirs.fileno(), True)
        module, *arguments = worker
        # -P: a folder called hloforge where the user is must not hide the installed package.
        command = [sys.executable, "-P", "-m", module, str(theirs.fileno()), *arguments]
        is_loud = os.environ.get(VARIABLE) == "loud"
        silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(2 if is_loud else 3)]
        # In a group of its own, because Ctrl-C is none of its business: it ends with its socket.
        os.posix_spawn(command[0], command, os.environ | _ALONE, file_actions=silent, setpgroup=0)
    return ours.detach()
