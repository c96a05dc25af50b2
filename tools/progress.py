"""A progress line on the terminal; nothing if the output is not a terminal. The times of steps."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

Say = Callable[[str], None]

# Seconds from which a part of a step is worth a line, until a line says what is being done, and between its changes.
_SHOWN, _PATIENCE, _INTERVAL = 1e-4, 1.0, 0.1
# Columns of the sign that turns, with a space.
_SPINNER = 2
# What says things on the line that is shown: a command has one.
_shown: list[Say] = []


def silent(_: str) -> None:
    """What says nothing."""


@contextmanager
def progress(title: str) -> Iterator[Say]:
    """Show on standard error what is being done and for how long, from one second on, if that is a terminal.

    Yields a function that says what is being done, which any thread may call: inside another one the same, ``silent``
    if nobody sees it.
    """
    if _shown or not sys.stderr.isatty():
        yield _shown[-1] if _shown else silent
        return
    doing, done = [""], threading.Event()

    def say(step: str) -> None:
        doing[:] = [step]

    def show() -> None:
        start = time.monotonic()
        if done.wait(_PATIENCE):
            return
        from rich.text import Text

        from hloforge.tools.terminal import console, one_line

        shown = console(stderr=True)
        with shown.status("") as status:
            while True:
                step = f": {doing[0]}" if doing[0] else ""
                line = Text(one_line(f"{title} ({time.monotonic() - start:.0f} s){step}"))
                line.truncate(shown.width - _SPINNER, overflow="ellipsis")
                status.update(line)
                if done.wait(_INTERVAL):
                    return

    thread = threading.Thread(target=show, name="hloforge-line", daemon=True)
    thread.start()
    _shown.append(say)
    try:
        yield say
    finally:
        _shown.remove(say)
        done.set()
        thread.join()


@dataclass
class Stopwatch:
    """Wall time of named steps, in order, and notes that are shown below them.

    Attributes:
        is_detailed: whether IREE's compiler is measured as well, which then takes 5 % longer.
    """

    steps: list[tuple[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_detailed: bool = False

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start, before = time.perf_counter(), len(self.steps)
        yield
        # The time of a step inside this one is its own.
        inside = sum(seconds for inner, seconds in self.steps[before:] if not inner.startswith(" "))
        self.steps.append((name, time.perf_counter() - start - inside))

    @contextmanager
    def parts(self) -> Iterator[None]:
        """Measure what IREE's compiler does in the step inside, if that is asked for."""
        if not self.is_detailed:
            yield
            return
        from hloforge.runtime.compile.timings import recorded

        with recorded() as parts:
            yield
        self.steps += [(f"  {name}", seconds) for name, seconds in parts.items()]

    def report(self) -> None:
        """The table on standard error; indented steps are parts of the step above, and shown if they took time."""
        shown = [(name, seconds) for name, seconds in self.steps if not name.startswith(" ") or seconds >= _SHOWN]
        total = sum(seconds for name, seconds in self.steps if not name.startswith(" "))
        width = max((len(name) for name, _ in shown), default=5)
        for name, seconds in (*shown, ("total", total)):
            click.echo(f"{name:<{width}}  {1e3 * seconds:9.1f} ms  {100 * seconds / (total or 1):5.1f} %", err=True)
        for note in self.notes:
            click.echo(f"note: {note}", err=True)
