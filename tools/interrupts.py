"""Ctrl-C and SIGTERM end the command at once, from within native code too, and leave nothing behind.

Python would raise KeyboardInterrupt between two instructions of the main thread: never while IREE runs a program, and
where an extension module is being imported the exception was lost (the command went on) or crashed the process. So
Python's handlers do nothing, and a thread that reads the signals' numbers from a pipe cleans up and ends the process.

MLIR's parser, verifier and passes hold Python's lock until they are done, which may be never: the thread does not run
then, and the number stays in the pipe. A process beside this one sees it there, and kills this one. Files are half
written, and compilers started, by Python, which is not running then.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from hloforge.dialect import forked
from hloforge.runtime.data.files import remove_pending

_ENDING = (signal.SIGINT, signal.SIGTERM)
# Seconds for the thread to take a number from the pipe; after that native code keeps it from doing so.
_PATIENCE = 0.6
_SHOW_CURSOR = b"\x1b[?25h\n"


def end_on_signals() -> None:
    """Let SIGINT and SIGTERM end this process with status 130 and 143; for the command's own process alone."""
    taken = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    if forked.AVAILABLE:
        _start_guard(reader, writer)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in taken:
        signal.signal(number, lambda *_: None)
    os.register_at_fork(after_in_child=_as_usual)
    atexit.register(_ignore, taken)
    threading.Thread(target=_watch, args=(reader,), name="hloforge-signals", daemon=True).start()


def _start_guard(reader: int, writer: int) -> None:
    """Start the process that kills this one where its thread does not run. It ends with this one."""
    command = os.getpid()
    if os.fork():
        return
    try:
        os.close(writer)
        forked.end_with_parent(command)
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches all that run in the terminal
        for stream in (0, 1, 2):
            os.close(stream)  # whoever reads this command's output waits for all who could write
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        while True:
            poll.poll()
            time.sleep(_PATIENCE)
            if poll.poll(0):
                os.kill(command, signal.SIGKILL)
    finally:
        os._exit(1)


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
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(2, _SHOW_CURSOR)
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
    os._exit(128 + number)


def _children() -> list[int]:
    """The processes that this one started, where Linux lists them: compilers, readers and reference engines."""
    found: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found
