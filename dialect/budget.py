"""The remaining budget of a compilation: one deadline for all of its phases, in all processes, and what it does now."""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hloforge.dialect.errors import Error

_LONGEST = 200


class OverBudgetError(Error):
    """A compilation's time or memory is spent: nothing else shall be tried. The border makes a CompileError of it."""


class Budget:
    """A deadline, bytes of memory, and what is being done, which the process that waits can read as well.

    Args:
        seconds: from now on; None for any time.
        memory: bytes of each process that compiles; None for any number.
        is_watched: whether somebody reads meanwhile what is being done.
    """

    def __init__(self, seconds: float | None, memory: int | None, *, is_watched: bool = False) -> None:
        self.seconds, self.memory, self.is_watched = seconds, memory, is_watched
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._phase = mmap.mmap(-1, _LONGEST)  # shared with children

    @property
    def is_limited(self) -> bool:
        """Whether there is a deadline, or a limit of memory."""
        return self.seconds is not None or self.memory is not None

    @property
    def remaining(self) -> float | None:
        """Seconds; None for any time."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    @property
    def phase(self) -> str:
        """What is being done."""
        return self._phase[:].rstrip(b"\0").decode("utf-8", "replace")

    def enter(self, phase: str) -> None:
        """Say what comes next. Raises OverBudgetError if there is no time for it."""
        self.check()
        self.say(phase)

    def say(self, phase: str) -> None:
        """Say what is being done, whatever time there is."""
        self._phase[:] = phase.encode()[:_LONGEST].ljust(_LONGEST, b"\0")

    def check(self) -> None:
        """Raises OverBudgetError if the time is up."""
        if self.remaining == 0:
            raise self.out_of_time()

    def out_of_time(self) -> OverBudgetError:
        """The error that says so."""
        during = f": stopped in {self.phase}" if self.phase else ""
        hint = "allow it more time: timeout= (--timeout)"
        return OverBudgetError(f"the compilation ran out of time ({self.seconds:g} s){during}", hint=hint)

    def out_of_memory(self) -> OverBudgetError:
        """The error that says so."""
        during = f": stopped in {self.phase}" if self.phase else ""
        hint = "allow it more memory: memory_limit= (--memory-limit)"
        return OverBudgetError(f"the compilation ran out of memory ({self.memory} bytes){during}", hint=hint)


_current: ContextVar[Budget | None] = ContextVar("_current", default=None)
# Of a process that does nothing but compile, for all of its threads.
_of_process: list[Budget] = []


def budget() -> Budget | None:
    """That of the compilation that runs; None if it has no limits and nobody watches it."""
    return _of_process[-1] if _of_process else _current.get()


def remaining() -> float | None:
    """Seconds that the compilation has left; None for any time."""
    running = budget()
    return None if running is None else running.remaining


def enter(phase: str) -> None:
    """Say what a compilation does next. Raises OverBudgetError if there is no time for it."""
    running = budget()
    if running is not None:
        running.enter(phase)


def check() -> None:
    """Raises OverBudgetError if the compilation's time is up."""
    running = budget()
    if running is not None:
        running.check()


@contextmanager
def spending(given: Budget) -> Iterator[Budget]:
    """Let what runs meanwhile take no more than this."""
    token = _current.set(given)
    try:
        yield given
    finally:
        _current.reset(token)


def is_of_process() -> bool:
    """Whether this process does nothing but compile, within a budget that its parent keeps."""
    return bool(_of_process)


def take_over(given: Budget) -> None:
    """Let all that this process does from now on take no more than this."""
    _of_process.append(given)
