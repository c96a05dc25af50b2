"""``make demo``: a network in HLO text becomes an IREE module, reads ten digits, and is checked against XLA."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from digits import draw, picture
from rich.columns import Columns
from rich.console import Console
from rich.table import Table

import hloforge

MODEL = Path(__file__).with_name("model.hlo")
NAMES = ("probabilities", "digits")
CALLS = 200


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the seconds that it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def latencies(*calls: Callable[[], Any]) -> list[float]:
    """The median seconds of a call of each, taken in turn so that the machine's moods hit all alike."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(CALLS):
        for call, found in zip(calls, times, strict=True):
            found.append(timed(call)[1])
    return [median(found) for found in times]


def main() -> int:
    """Runs the demo; 1 if a result differs from XLA's."""
    console = Console()
    executable, compile_seconds = timed(lambda: hloforge.compile(MODEL))
    session = executable.load()
    # In this process, so that both are called alike.
    engine = hloforge.reference("xla", isolated=False)
    reference, xla_seconds = timed(lambda: engine.prepare(hloforge.read(MODEL)))

    labels = np.random.default_rng(3).permutation(10)
    images = draw(labels, seed=4)
    results, expected = session(images), reference(images)
    report = hloforge.compare(results, expected, names=NAMES)
    ours, theirs = latencies(lambda: session(images), lambda: reference(images))

    console.print(f"\n[bold]{MODEL.name}[/bold]: {session.signature}\n")
    console.print(
        Columns([f"{picture(i)}\n reads {d}\n" for i, d in zip(images, results[1], strict=True)], padding=(0, 3))
    )
    console.print(f"{int((results[1] == labels).sum())} of 10 digits read right\n")

    checks = Table("result", "type", "largest error", "allowed", "agrees with XLA")
    for row in report.results:
        checks.add_row(row.name, row.type, f"{row.max_absolute:.2g}", str(row.tolerance), "yes" if row.agrees else "NO")
    console.print(checks)

    costs = Table("", "hloforge", "XLA's CPU client", "hloforge / XLA")
    costs.add_row("compile", f"{compile_seconds:.2f} s", f"{xla_seconds:.2f} s", f"{compile_seconds / xla_seconds:.2f}")
    costs.add_row("call (median)", f"{1e6 * ours:.0f} µs", f"{1e6 * theirs:.0f} µs", f"{ours / theirs:.2f}")
    costs.add_row("vmfb", f"{len(executable.vmfb) / 1024:.0f} KiB", "", "")
    console.print(costs)
    if not report.agrees:
        print(report.text(), file=sys.stderr)
    return 0 if report.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
