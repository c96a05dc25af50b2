"""Functions that run in a forked child process, which a deadline, a limit of memory or a crash ends at any time.

Python cannot stop MLIR's code, nor XLA's: it holds Python's lock until it returns, so that no thread and no handler of
a signal runs. A process can be stopped. A forked child costs 4 ms, one that loads jaxlib again 210. It uses no thread
of the parent, because it has none of them, and ends by ``_exit``. Linux alone has it: forks are unsafe on macOS and
missing on Windows.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import os
import pickle
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

from hloforge.dialect.errors import Error

Result = TypeVar("Result")

AVAILABLE = sys.platform.startswith("linux")
UNLIMITED = -1
# What native code says when it gets no memory.
_EXHAUSTED = ("bad_alloc", "out of memory", "Out of memory", "Allocation failed", "Failed to allocate buffer")
_PR_SET_PDEATHSIG = 1
# A child that is told to end removes its temporary files first, unless native code keeps it.
_GRACE = 0.3

_stays = ContextVar("_stays", default=False)


@contextmanager
def trusted() -> Iterator[None]:
    """Fork no children meanwhile: for programs that jaxlib has just written, among threads of JAX's."""
    token = _stays.set(True)
    try:
        yield
    finally:
        _stays.reset(token)


def may_fork() -> bool:
    """Whether functions can run in a forked child here."""
    return AVAILABLE and not _stays.get()


class StoppedError(Exception):
    """The child has no result.

    Attributes:
        how: ``time``, ``memory`` or ``crash``.
        status: of ``waitpid``, of a crash.
        log: what it wrote to its standard error.
    """

    def __init__(self, how: str, status: int = 0, log: str = "") -> None:
        super().__init__(how)
        self.how, self.status, self.log = how, status, log


def run_forked(
    function: Callable[[], Result],
    *,
    seconds: float | None,
    memory: int = UNLIMITED,
    on_end: Callable[[], object] | None = None,
) -> Result:
    """``function()``, computed in a child process; its result or exception comes back by pickle.

    Args:
        seconds: that it may take; None for any time.
        memory: bytes that it may take beside what this process has, or UNLIMITED.
        on_end: the child starts processes of its own, which end with it; called in it when it is told to end early.

    Raises:
        StoppedError: it took more than it may, or crashed.
        Exception: what the function raised.
    """
    # In memory: a full disk, or no folder to write to, is no reason to refuse a program.
    with os.fdopen(os.memfd_create("hloforge-log"), "w+b") as log:
        reader, writer = os.pipe()
        parent, child = os.getpid(), fork()
        if child == 0:
            os.close(reader)
            _child(function, writer, log.fileno(), memory, parent, on_end)
        os.close(writer)
        try:
            answer = _read(reader, seconds)
        except BaseException:
            _stop(child, is_group=on_end is not None)
            raise
        finally:
            os.close(reader)
        if on_end is not None:
            # What a crash left of its processes, while nobody else can have the number.
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            _kill_group(child)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) or not answer:
            log.seek(0)
            text = log.read().decode("utf-8", "replace")
            raise StoppedError("memory" if is_exhausted(text) else "crash", status, text)
    return cast(Result, value_of(answer))


def is_exhausted(text: str) -> bool:
    """Whether native code says there that it got no memory."""
    return any(sign in text for sign in _EXHAUSTED)


def fork() -> int:
    """``os.fork``, after which the child's garbage collector leaves alone what the parent had.

    It would destroy MLIR contexts of the parent, which wait for the threads of their pools: the child has none of them
    and would wait for ever.
    """
    collects, child = gc.isenabled(), -1
    gc.disable()
    _prctl()  # looked up here: another thread may hold the loader's lock while this one forks
    try:
        with warnings.catch_warnings():
            # Python and JAX warn of locks that other threads hold; the child takes none but malloc's.
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            gc.freeze()
    finally:
        if collects:
            gc.enable()
    return child


@functools.cache
def _prctl() -> Callable[[int, int], int]:
    function = ctypes.CDLL(None).prctl
    function.argtypes, function.restype = (ctypes.c_int, ctypes.c_ulong), ctypes.c_int
    call: Callable[[int, int], int] = function
    return call


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, however that ends."""
    if AVAILABLE:
        _prctl()(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it ended before


def _child(
    function: Callable[[], Any],
    writer: int,
    log: int,
    memory: int,
    parent: int,
    on_end: Callable[[], object] | None,
) -> None:
    code = 1
    try:
        # The crash is reported by the parent; a dump of the child's stack would only alarm.
        faulthandler.disable()
        end_with_parent(parent)
        _take_signals(on_end)
        log_to(log, keep_python=on_end is not None)
        limit_memory(memory)
        answer = answer_of(function)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        code = 0
    finally:
        os._exit(code)


def answer_of(function: Callable[[], Any]) -> bytes:
    """A function's result or exception, for ``value_of``."""
    try:
        return pickle.dumps((True, function()), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return pickle.dumps((False, StoppedError("memory")))
    except Error as error:
        return pickle.dumps((False, _portable(error)))
    except Exception as error:
        told = "".join(traceback.format_exception(error))
        with suppress(Exception):
            error.add_note(f"In the child process:\n{told}")
            return pickle.dumps((False, _portable(error)))
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def value_of(answer: bytes) -> Any:
    """What a child has computed, from its ``answer_of``. Raises what its function raised."""
    succeeded, value = pickle.loads(answer)
    if not succeeded:
        raise value
    return value


def _portable(error: Exception) -> Exception:
    """The error without what does not pickle (its traceback, a native cause)."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _take_signals(on_end: Callable[[], object] | None) -> None:
    if on_end is None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        return
    # A group of its own: Ctrl-C reaches the parent alone, which ends the group.
    os.setpgid(0, 0)

    def end(*_: object) -> None:
        with suppress(Exception):
            on_end()
        os.kill(os.getpid(), signal.SIGSTOP)  # whoever waits for a result shall see none; settle() sees this

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def log_to(log: int, *, keep_python: bool) -> None:
    """Send native code's output to the log; Python's own may go on to where it went."""
    if keep_python and sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
            sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    os.dup2(log, 1)
    os.dup2(log, 2)


def memory_taken() -> int:
    """Bytes that this process has, as ``limit_memory`` counts them."""
    status = Path("/proc/self/status").read_text()
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData:")), 0)


def limit_memory(memory: int, taken: int | None = None) -> None:
    """Let this process take so many bytes beside those that it has, or that it had."""
    if memory == UNLIMITED:
        return
    import resource  # Unix alone has it, and children that are forked

    taken = memory_taken() if taken is None else taken
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = taken + memory
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most < 0 else min(wanted, most), most))


def _read(reader: int, seconds: float | None) -> bytes:
    end = None if seconds is None else time.monotonic() + seconds
    chunks: list[bytes] = []
    poll = select.poll()  # select() knows no numbers above 1,023
    poll.register(reader, select.POLLIN | select.POLLHUP)
    while True:
        wait = None if end is None else max(end - time.monotonic(), 0) * 1000
        if not poll.poll(wait):
            raise StoppedError("time")
        chunk = os.read(reader, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def _stop(child: int, *, is_group: bool) -> None:
    """End a child, in order if it can, and all that it started."""
    if is_group:
        settle([child])
        _kill_group(child)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def settle(children: Iterable[int]) -> None:
    """Tell children that run a function with ``on_end`` to end; those that native code does not keep have done so then.

    They are stopped, not gone: whoever waits for them goes on waiting.
    """
    waiting = set(children)
    for child in waiting:
        os.kill(child, signal.SIGTERM)
    end = time.monotonic() + _GRACE
    while waiting and time.monotonic() < end:
        time.sleep(0.002)
        waiting -= {child for child in waiting if _is_still(child)}


def _is_still(child: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, child, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return True


def leads_a_group(child: int) -> bool:
    """Whether a child runs a function with ``on_end``: all that it started ends with its group."""
    with suppress(ProcessLookupError):
        return os.getpgid(child) == child
    return False


def kill(child: int) -> None:
    """End a child at once, and its group if it leads one."""
    if leads_a_group(child):
        _kill_group(child)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
