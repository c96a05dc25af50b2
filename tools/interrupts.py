"""Ctrl-C and SIGTERM end the command at once, from within native code too: one line, and nothing is left behind.

Python would raise KeyboardInterrupt between two instructions of the main thread: never while IREE runs a program, and
where an extension module is being imported the exception was lost (the command went on) or crashed the process. So
Python's handlers only stop the main thread. Another thread reads the signals' numbers from a pipe, cleans up and ends
the process.

MLIR's parser, verifier and passes hold Python's lock until they are done, which may be never: the thread does not run
then, and the number stays in the pipe. A process beside this one sees it there, removes the temporary folders and ends
this one. Files are half written, and compilers started, by Python, which is not running then.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hloforge.dialect import forked
from hloforge.runtime.data.files import remove_pending, remove_temporary
from hloforge.tools.remote_exit import RemoteExit

_ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
# Seconds for the thread to take a number from the pipe; after that native code keeps it from doing so.
_PATIENCE = 0.6
# Seconds for a message to end the command, before it is killed.
_LAST = 0.5
# Over the line that says what is being done, which hides the cursor.
_CLEAR_LINE = "\r\x1b[2K\x1b[?25h"
# Whether this process has the handlers.
_installed: list[bool] = []


def end_on_signals() -> None:
    """Let SIGINT and SIGTERM end this process with status 130 and 143; for the command's own process alone."""
    taken = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    if forked.AVAILABLE:
        exits = {number: RemoteExit(128 + number) for number in taken}
        _start_guard(reader, writer, exits)
        for ending in exits.values():
            ending.listen()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in taken:
        signal.signal(number, _wait)
    os.register_at_fork(after_in_child=_as_usual)
    atexit.register(_ignore, taken)
    _installed.append(True)
    threading.Thread(target=_watch, args=(reader,), name="hloforge-signals", daemon=True).start()


@contextmanager
def in_order() -> Iterator[None]:
    """Let Ctrl-C be a KeyboardInterrupt meanwhile, for what has a result to write."""
    if not _installed or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    writer = signal.set_wakeup_fd(-1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = signal.signal(signal.SIGTERM, lambda number, _: _end(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, other)
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)


def _start_guard(reader: int, writer: int, exits: dict[signal.Signals, RemoteExit]) -> None:
    """Start the process that ends this one where its thread does not run. It ends with this one."""
    command = os.getpid()
    if os.fork():
        return
    try:
        os.close(writer)
        forked.end_with_parent(command)
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches all that run in the terminal
        # Whoever reads this command's output waits for all who could write; the kernel ends this process first.
        for stream in (0, 1):
            os.close(stream)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        while True:
            poll.poll()
            time.sleep(_PATIENCE)
            if poll.poll(0):
                number = signal.Signals(os.read(reader, 1)[0])
                remove_temporary()
                _say(2, number)
                exits[number].send()
                time.sleep(_LAST)
                os.kill(command, signal.SIGKILL)
    finally:
        os._exit(1)


def _say(stream: int, number: int) -> None:
    """One line that says why the command ends."""
    line = f"{_ENDING[signal.Signals(number)]}\n"
    with suppress(OSError):
        os.write(stream, (f"{_CLEAR_LINE}{line}" if os.isatty(stream) else line).encode())


def _wait(*_: object) -> None:
    """Keep the main thread, which runs this, from going on.

    It might enter native code that keeps Python's lock, or tell how a compiler ended that the same Ctrl-C has ended.
    """
    while True:
        time.sleep(_PATIENCE)


def _ignore(numbers: list[signal.Signals]) -> None:
    """The command is done: Python would take its handlers away, and a signal then end it as if it were not."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _as_usual() -> None:
    """A fork shares the pipe: a signal to the child would end the parent."""
    signal.set_wakeup_fd(-1)
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _watch(reader: int) -> None:
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    # A read would take the number out of the pipe before it waits for Python's lock.
    while poll.poll() and (number := os.read(reader, 1)):
        if number[0] in _ENDING:
            _end(number[0])


def _end(number: int) -> None:
    """Stop the children, remove what is half written, and end all."""
    # Other threads may still print what they do.
    stream = _silenced()
    children = _children()
    compiling = [child for child in children if forked.leads_a_group(child)]
    for child in set(children).difference(compiling):
        # A killed child would be an error for the main thread, which might begin another one.
        with suppress(OSError):
            os.kill(child, signal.SIGSTOP)
    forked.settle(compiling)
    remove_pending()
    for child in children:
        forked.kill(child)
    remove_temporary()  # of what was just killed
    _say(stream, number)
    os._exit(128 + number)


def _silenced() -> int:
    """Where standard error went, which goes nowhere from now on."""
    try:
        stream = os.dup(2)
    except OSError:
        return -1  # it is closed
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return stream


def _children() -> list[int]:
    """The processes that this one started, where Linux lists them: compilers, readers and reference engines."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found
