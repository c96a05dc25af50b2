"""Running jaxlib's readers so that a crash of theirs does not take the user's process along.

Measured by flipping bits of real files: every reader of jaxlib can abort or never return: HLO text and protos by XLA's
``CHECK`` (about 1 % of the flips), MLIR bytecode and portable artifacts by segmentation faults and heap corruption
(2 %). So they run in a child process: one that a server keeps ready (guard_server.py), or a fork of this process
(dialect/forked.py) while no server is ready; where there are none, in the process itself.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TypeVar

from hloforge.dialect import budget
from hloforge.dialect.errors import Error, ImporterError
from hloforge.dialect.forked import UNLIMITED, StoppedError, is_exhausted, may_fork, run_forked, trusted
from hloforge.dialect.mlir import prepare_context
from hloforge.importers.guard_server import GoneError, is_wanted, reader_server, serves

__all__ = ["MEMORY_A_BYTE", "MEMORY_LIMIT", "TIME_LIMIT", "UNLIMITED", "CrashError", "guarded", "prepare", "trusted"]

Result = TypeVar("Result")
# A reader that loops on damaged input is stopped; a sound 300 KB dump takes 0.2 s.
TIME_LIMIT = 120.0
# A damaged count makes readers ask for any amount of memory. Sound programs take some 20 bytes for a byte of text.
MEMORY_LIMIT, MEMORY_A_BYTE = 2 << 30, 64


class CrashError(ImporterError):
    """A reader ended its process."""


def guarded(
    function: Callable[..., Result], *arguments: object, limit: float | None = None, memory: int | None = None
) -> Result:
    """``function(*arguments)``, computed in a child process; result and ``hloforge.Error`` come back by pickle.

    Args:
        limit: seconds that it may take; default TIME_LIMIT. A compilation's deadline holds besides.
        memory: bytes that it may take beside what this process has, or UNLIMITED; by default MEMORY_LIMIT and
            MEMORY_A_BYTE for each byte of its arguments.

    Raises:
        Error: what the function raised.
        CrashError: the child crashed.
        ImporterError: the child took more time or memory than it may.
        OverBudgetError: the compilation's time is up.
    """
    if memory is None:
        memory = MEMORY_LIMIT + MEMORY_A_BYTE * sum(len(a) for a in arguments if isinstance(a, str | bytes))
    running = budget.budget()
    budget.check()
    if not may_fork():
        return function(*arguments)
    limit = TIME_LIMIT if limit is None else limit
    if running is not None and running.memory is not None:
        memory = running.memory if memory == UNLIMITED else min(memory, running.memory)
    left = budget.remaining()
    try:
        return _in_child(function, arguments, limit if left is None else min(limit, left), memory)
    except StoppedError as stopped:
        budget.check()
        why, exhausted = _why(stopped, limit), stopped.how == "memory"
        if stopped.how not in ("memory", "time"):
            raise CrashError(why, hint=_HINT) from None
    except Error as error:
        if not is_exhausted(error.message):
            raise
        why, exhausted = "", True
    except Exception as error:
        raise ImporterError(f"{type(error).__name__}: {error}".splitlines()[0]) from None
    if exhausted and running is not None and memory == running.memory:
        raise running.out_of_memory()
    if exhausted:
        why = f"reading takes more than {memory / 2**30:.1f} GiB of memory and was stopped"
    raise ImporterError(why, hint=_HINT)


def prepare() -> None:
    """Have a child ready for the next program but one, if this process may read others."""
    if is_wanted() and may_fork() and not budget.is_of_process():
        reader_server().start()


def _in_child(function: Callable[..., Result], arguments: tuple[object, ...], seconds: float, memory: int) -> Result:
    """As ``run_forked``, by the server's child if there is one."""
    if not (is_wanted() and serves(function)):
        return run_forked(lambda: function(*arguments), seconds=seconds, memory=memory)
    try:
        # What reads the answer needs a context.
        answer: Result = reader_server().ask(function, arguments, seconds, memory, meanwhile=prepare_context)
        return answer
    except GoneError:
        pass
    try:
        return run_forked(lambda: function(*arguments), seconds=seconds, memory=memory)
    finally:
        prepare()


_HINT = "the program is malformed or damaged, or was written by another version of XLA or StableHLO"


def _why(stopped: StoppedError, limit: float) -> str:
    if stopped.how == "time":
        return f"reading took longer than {limit:g} s and was stopped"
    lines = [line.strip() for line in stopped.log.splitlines() if "Check failed" in line or "LLVM ERROR" in line]
    if lines:
        # `F1121 05:44:50.69 15372 file.cc:188] Check failed: …`: what follows the bracket is for the user.
        return "XLA's reader gave up: " + lines[0].split("] ", 1)[-1]
    if os.WIFSIGNALED(stopped.status):
        return f"XLA's reader crashed ({signal.Signals(os.WTERMSIG(stopped.status)).name})"
    return "XLA's reader ended without a result"
