"""A process that has jaxlib's readers loaded, and has a child ready for each program (``guard_server.py``).

A child reads one program and ends, so that nothing that it reads reaches the next one: whatever damage it takes, the
next one is forked from a process that has read nothing. It has run a reader before it is asked, because a forked
child takes 3 ms (of HLO 8) for the pages that it writes to first. It is made ready a while after the last request, so
that it keeps no processor from the process that asks and goes on with what it has read.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import pickle
import resource  # noqa: F401  # ``limit_memory`` would import it while somebody waits
import select
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass

from hloforge.dialect.forked import answer_of, end_with_parent, fork, limit_memory, log_to, memory_taken
from hloforge.dialect.mlir import prepare_context
from hloforge.importers import native
from hloforge.importers.guard_server import LENGTH, NAME, STATUS, greeting, received

# Seconds without a request after which the next child is made ready.
_LATER = 0.02
# Seconds without a request after which the process ends; the next one starts another.
_IDLE = 900.0
# Children that end before they are asked, one after the other, until this process gives up.
_TRIES = 3
# Destroying a context would take as long as a small program.
_kept: list[object] = []
_CONNECTION, _LOG, _STATUS = range(3)
_MLIR = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
_HLO = """HloModule warm
ENTRY warm {
  a = f32[4] parameter(0)
  ROOT b = f32[4] add(a, a)
}
"""
# What reads HLO.
_OF_HLO = (native.hlo_text_to_mlir.__name__, native.hlo_proto_to_mlir.__name__)


@dataclass
class _Child:
    """A child that waits for its request, or reads.

    Attributes:
        process: a descriptor of it.
        hand: where it gets what it needs.
        status: where to say how it has ended; None while it waits.
    """

    number: int
    process: int
    hand: socket.socket
    status: int | None = None


class _Worker:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._ready: _Child | None = None
        self._reading = 0
        self._tries = _TRIES
        # The function that was asked for last.
        self._last = ""
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the other end of the socket is closed."""
        self._ready = self._forked()
        while self._tries:
            found = self._selector.select(_IDLE if self._ready else _LATER)
            if not found:
                if self._ready and not self._reading:
                    return
                self._ready = self._ready or self._forked()
            for key, _ in found:
                if key.data is not None:
                    self._bury(key.data)
                elif not self._serve():
                    return

    def _serve(self) -> bool:
        """Hand a request to a child; whether there was one."""
        said, descriptors = _taken(self._control, NAME, 3)
        if not said:
            return False
        self._last = said.decode()
        try:
            child = self._ready or self._forked(is_asked=True)
            self._ready = None
            socket.send_fds(child.hand, [b"C"], descriptors)
            child.status = os.dup(descriptors[_STATUS])
            self._reading += 1
        except OSError:
            # It has ended; whoever asks sees the connection closed, and does without.
            pass
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _bury(self, child: _Child) -> None:
        self._selector.unregister(child.process)
        _, status = os.waitpid(child.number, 0)
        os.close(child.process)
        child.hand.close()
        if child.status is None:
            self._tries -= 1
            self._ready = None if self._ready is child else self._ready
            return
        self._tries = _TRIES
        self._reading -= 1
        with suppress(OSError):  # nobody waits for it any more
            os.write(child.status, STATUS.pack(status))
        os.close(child.status)

    def _forked(self, *, is_asked: bool = False) -> _Child:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent, number = os.getpid(), fork()
        if number == 0:
            try:
                ours.close()
                self._control.close()
                _read_one(theirs, parent, None if is_asked else self._last)
            finally:
                os._exit(1)
        theirs.close()
        child = _Child(number, os.pidfd_open(number), ours)
        self._selector.register(child.process, selectors.EVENT_READ, child)
        return child


def _taken(source: socket.socket, size: int, count: int) -> tuple[bytes, list[int]]:
    """Some bytes and descriptors.

    A process that native code starts would keep open what it inherits, and whoever asks would wait for its end.
    """
    said, descriptors, _, _ = socket.recv_fds(source, size, count)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return said, descriptors


def _read_one(hand: socket.socket, parent: int, last: str | None) -> None:
    """Get ready for what was asked for last, unless there is a request already; answer a request, and end."""
    faulthandler.disable()
    end_with_parent(parent)
    if last is not None:
        warm(last)
        _kept.append(prepare_context())
    taken = memory_taken()
    said, descriptors = _taken(hand, 1, 3)
    if not said:
        os._exit(1)
    _end_with(descriptors[_STATUS])
    connection = socket.socket(fileno=descriptors[_CONNECTION])
    log_to(descriptors[_LOG], keep_python=False)
    (length,) = LENGTH.unpack(received(connection, LENGTH.size))
    function, arguments, memory = pickle.loads(received(connection, length))
    limit_memory(memory, taken)
    answer = answer_of(lambda: function(*arguments))
    connection.sendall(LENGTH.pack(len(answer)))
    connection.sendall(answer)
    os._exit(0)


def warm(last: str) -> None:
    """Run a reader once."""
    if last in _OF_HLO:
        native.hlo_text_to_mlir(_HLO, "warm")
    else:
        native.mlir_bytecode_to_bytecode(native.mlir_text_to_bytecode(_MLIR, "warm"), "warm")


def _end_with(status: int) -> None:
    """Let the kernel end this process when the other side closes the pipe of its status, in native code too.

    The connection would not do: the kernel tells of bytes that came through it after this process has read them, and
    that signal has no other meaning than the one of an end. Nothing is written to this pipe while the process lives.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(status, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(status, fcntl.F_SETFL, fcntl.fcntl(status, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(status, 0)
    if poll.poll(0):
        os._exit(1)  # it was closed before


def main() -> None:
    """Serve requests that come through a socket until its other end is closed."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = _Worker(control)
    # Its code comes from disk.
    for function in ("", *_OF_HLO[:1]):
        warm(function)
    control.send(greeting())
    worker.run()


if __name__ == "__main__":
    main()
