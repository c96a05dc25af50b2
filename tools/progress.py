"""A progress line on the terminal; nothing if the output is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

Say = Callable[[str], None]

# Seconds from which a part of a step is worth a line.
_SHOWN = 1e-4


@contextmanager
def progress(title: str) -> Iterator[Say]:
    """Show a spinner on standard error, if that is a terminal. Yields a function that says what is being done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.text import Text

    from hloforge.tools.terminal import console, one_line

    with console(stderr=True).status(title) as status:
        yield lambda step: status.update(Text(one_line(f"{title}: {step}")))


@dataclass
class Stopwatch:
    """Wall time of named steps, in order, and notes that are shown below them."""

    steps: list[tuple[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start, before = time.perf_counter(), len(self.steps)
        yield
        # The time of a step inside this one is its own.
        inside = sum(seconds for inner, seconds in self.steps[before:] if not inner.startswith(" "))
        self.steps.append((name, time.perf_counter() - start - inside))

    def report(self) -> None:
        """The table on standard error; indented steps are parts of the step above, and shown if they took time."""
        shown = [(name, seconds) for name, seconds in self.steps if not name.startswith(" ") or seconds >= _SHOWN]
        total = sum(seconds for name, seconds in self.steps if not name.startswith(" "))
        width = max((len(name) for name, _ in shown), default=5)
        for name, seconds in (*shown, ("total", total)):
            click.echo(f"{name:<{width}}  {1e3 * seconds:9.1f} ms  {100 * seconds / (total or 1):5.1f} %", err=True)
        for note in self.notes:
            click.echo(f"note: {note}", err=True)
