"""Programs that numpy runs until compiled code is worth it (``HLOFORGE_JIT``).

A program of JAX that is evaluated once, such as an operation of an eager function, waits for no compiler: it is run by
its plan (``pipelines.evaluation``), which gives the bits that compiled code gives. What runs often is compiled as well.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter, time_ns
from typing import Any

from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import OptionError
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.evaluation.plan import Plan, SpentError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.devices.devices import device
from hloforge.runtime.session.arrays import Codec
from hloforge.runtime.session.session import Session
from hloforge.runtime.session.timed import TimedCall

VARIABLE = "HLOFORGE_JIT"
_CHOICES = ("fast", "best")
# A plan has cost what a small compilation costs after so many seconds, or runs often after so many calls.
_SECONDS, _CALLS = 0.05, 50
# From this many elements in its heaviest operation on a program takes longer than handing it to another thread.
WORTH_A_THREAD = 200_000


def waits_for_code() -> bool:
    """Whether each program is compiled before it runs first. Raises OptionError for another value of the variable."""
    chosen = os.environ.get(VARIABLE, "") or "fast"
    if chosen not in _CHOICES:
        raise OptionError(f"{VARIABLE}={chosen} is no choice", hint=f"one of {', '.join(_CHOICES)}")
    return chosen == "best"


class Tiered:
    """A program that is run by its plan, and compiled when that takes longer than compiling it.

    Attributes:
        compiled: the executable, which asking for it compiles.
        is_long: whether a call takes longer than handing it to another thread.
    """

    def __init__(self, plan: Plan, signature: Signature, compile: Callable[[], Executable]) -> None:
        self._plan = plan
        self.is_long = plan.body.cost >= WORTH_A_THREAD
        self._parameters = _codecs([leaf.shape for leaf in signature.flat_parameters])
        self._results = _codecs(signature.flat_results)
        self._compile = compile
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._seconds, self._calls, self._is_asked = 0.0, 0, False

    @cached_property
    def compiled(self) -> Executable:
        with self._lock:
            return self._compile()

    def call_views(self, views: list[Any]) -> list[Any]:
        """As ``Session.call_views``."""
        session = self._session
        if session is not None:
            return session.call_views(views)
        began = perf_counter()
        try:
            made = self._plan([codec.decode(view) for codec, view in zip(self._parameters, views, strict=True)])
        except SpentError:
            return self._load().call_views(views)
        host = device("local-sync")
        results = [codec.encode(value, host, []) for codec, value in zip(self._results, made, strict=True)]
        self._count(perf_counter() - began)
        return results

    def call_views_timed(self, views: list[Any]) -> TimedCall:
        """As ``Session.call_views_timed``."""
        session = self._session
        if session is not None:
            return session.call_views_timed(views)
        begin = time_ns()
        results = self.call_views(views)
        return TimedCall(results, begin, time_ns())

    def _count(self, seconds: float) -> None:
        # The first call of a process prepares the device, and each first call its memory.
        self._seconds += seconds if self._calls else 0
        self._calls += 1
        if not self._is_asked and (self._seconds > _SECONDS or self._calls >= _CALLS):
            self._is_asked = True
            _background.add(self._load)

    def _load(self) -> Session:
        executable = self.compiled
        with self._lock:
            if self._session is None:
                self._session = executable.load()
            return self._session


def _codecs(shapes: Sequence[Shape]) -> list[Codec]:
    # Overwritten: results are copied, because they may lie in arguments and constants.
    return [Codec(f"value {n}", shape, overwritten=True) for n, shape in enumerate(shapes) if crosses(shape)]


class _Background:
    """Work that a thread does, one piece after the other; what has not begun when the process ends is dropped."""

    def __init__(self) -> None:
        self._work: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._is_running = False
        os.register_at_fork(after_in_child=self._forget)

    def add(self, work: Callable[[], object]) -> None:
        with self._lock:
            self._work.append(work)
            if self._is_running:
                return
            self._is_running = True
        # No daemon: one that returns from IREE or MLIR while Python ends would end the process with an error.
        threading.Thread(target=self._run, name="hloforge compiles", daemon=False).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._work or not threading.main_thread().is_alive():
                    self._work.clear()
                    self._is_running = False
                    return
                work = self._work.popleft()
            try:
                work()
            except Exception:
                # The plan goes on; whoever asks for the executable gets the error.
                continue

    def _forget(self) -> None:
        """A child of a fork has none of its parent's threads."""
        self._work, self._lock, self._is_running = deque(), threading.Lock(), False


_background = _Background()
