"""Running jaxlib's readers so that a crash of theirs does not take the user's process along.

Measured by flipping bits of real files: every reader of jaxlib can abort or never return: HLO text and protos by XLA's
``CHECK`` (about 1 % of the flips), MLIR bytecode and portable artifacts by segmentation faults and heap corruption
(2 %). A forked child costs about 4 ms, a spawned one 210 ms for loading jaxlib again, so the child is forked. It runs
nothing but the reader, touches no thread of the parent's, and ends by ``_exit``. Where ``fork`` is unsafe (macOS) or
missing (Windows) the reader runs in the process itself.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from hloforge.dialect.errors import Error, ImporterError

Result = TypeVar("Result")
# A reader that loops on damaged input is stopped; a sound 300 KB dump takes 0.2 s.
TIME_LIMIT = 120.0
# A damaged count makes readers ask for any amount of memory. Sound programs take some 20 bytes for a byte of text.
MEMORY_LIMIT, MEMORY_A_BYTE = 2 << 30, 64
UNLIMITED = -1

_trusts = ContextVar("_trusts", default=False)


@contextmanager
def trusted() -> Iterator[None]:
    """Run readers in this process meanwhile: for programs that jaxlib has just written, among threads of JAX's."""
    token = _trusts.set(True)
    try:
        yield
    finally:
        _trusts.reset(token)


def guarded(
    function: Callable[..., Result], *arguments: Any, limit: float | None = None, memory: int | None = None
) -> Result:
    """``function(*arguments)``, computed in a child process; result and ``hloforge.Error`` come back by pickle.

    Args:
        limit: seconds that it may take; default TIME_LIMIT.
        memory: bytes that it may take beside what this process has, or UNLIMITED; by default MEMORY_LIMIT and
            MEMORY_A_BYTE for each byte of its arguments.

    Raises:
        Error: what the function raised.
        ImporterError: the child crashed, or took more time or memory than it may.
    """
    if memory is None:
        memory = MEMORY_LIMIT + MEMORY_A_BYTE * sum(len(a) for a in arguments if isinstance(a, str | bytes))
    if not sys.platform.startswith("linux") or _trusts.get():
        return function(*arguments)
    # In memory: a full disk, or no folder to write to, is no reason to refuse a program.
    with os.fdopen(os.memfd_create("hloforge-log"), "w+b") as log:
        reader, writer = os.pipe()
        child = _fork()
        if child == 0:
            _child(function, arguments, writer, log.fileno(), memory)
        os.close(writer)
        try:
            answer = _read(reader, TIME_LIMIT if limit is None else limit)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        finally:
            os.close(reader)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) or not answer:
            log.seek(0)
            raise ImporterError(_crash(log.read().decode("utf-8", "replace"), status, memory), hint=_HINT)
    succeeded, value = pickle.loads(answer)
    if not succeeded:
        raise value
    result: Result = value
    return result


_HINT = "the program is malformed or damaged, or was written by another version of XLA or StableHLO"
# What native code says when it gets no memory.
_EXHAUSTED = ("bad_alloc", "out of memory", "Out of memory", "Allocation failed", "Failed to allocate buffer")


def _fork() -> int:
    """``os.fork``, with the garbage collector off in the child.

    A collection there would destroy MLIR contexts of the parent, which wait for the threads of their pools: the child
    has none of them and would wait for ever.
    """
    collects, child = gc.isenabled(), -1
    gc.disable()
    try:
        with warnings.catch_warnings():
            # Python and JAX warn of locks that other threads hold; the reader takes none but malloc's.
            warnings.simplefilter("ignore")
            child = os.fork()
    finally:
        if collects and child != 0:
            gc.enable()
    return child


def _child(function: Callable[..., Any], arguments: tuple[Any, ...], writer: int, log: int, memory: int) -> None:
    code = 1
    try:
        # The crash is reported by the parent; a dump of the child's stack would only alarm.
        faulthandler.disable()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _limit_memory(memory)
        try:
            answer = pickle.dumps((True, function(*arguments)))
        except Error as error:
            answer = pickle.dumps((False, _portable(error, memory)))
        except MemoryError:
            answer = pickle.dumps((False, ImporterError(_too_much(memory), hint=_HINT)))
        except Exception as error:
            answer = pickle.dumps((False, ImporterError(f"{type(error).__name__}: {error}".splitlines()[0])))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        code = 0
    finally:
        os._exit(code)


def _limit_memory(memory: int) -> None:
    """Let this process take so many bytes beside those that it has."""
    if memory == UNLIMITED:
        return
    import resource  # Unix alone has it, and children that are forked

    status = Path("/proc/self/status").read_text()
    taken = next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData:")), 0)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = taken + memory
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most < 0 else min(wanted, most), most))


def _too_much(memory: int) -> str:
    return f"reading takes more than {memory / 2**30:.1f} GiB of memory and was stopped"


def _portable(error: Error, memory: int) -> Error:
    """The error without what does not pickle (its traceback, a native cause)."""
    if any(sign in error.message for sign in _EXHAUSTED):
        error.message, error.hint = _too_much(memory), _HINT
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _read(reader: int, limit: float) -> bytes:
    deadline = time.monotonic() + limit
    chunks: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            raise ImporterError(f"reading took longer than {limit:g} s and was stopped", hint=_HINT)
        chunk = os.read(reader, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def _crash(log: str, status: int, memory: int) -> str:
    if any(sign in log for sign in _EXHAUSTED):
        return _too_much(memory)
    lines = [line.strip() for line in log.splitlines() if "Check failed" in line or "LLVM ERROR" in line]
    if lines:
        # `F1121 05:44:50.69 15372 file.cc:188] Check failed: …`: what follows the bracket is for the user.
        return "XLA's reader gave up: " + lines[0].split("] ", 1)[-1]
    if os.WIFSIGNALED(status):
        return f"XLA's reader crashed ({signal.Signals(os.WTERMSIG(status)).name})"
    return "XLA's reader ended without a result"
