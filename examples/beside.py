"""One model run in several ways, called in turn: how far apart the answers are, and the times.

The first way is what the others are compared with. Times are the smallest of many calls, so that what else the machine
does counts least: until the answer is there, and what all processors together spend on it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

_PATIENCE = 8.0


def beside(title: str, ways: dict[str, Callable[[], Any]], seconds: float = _PATIENCE) -> dict[str, float]:
    """Prints a table of ways to compute the same array.

    Args:
        ways: functions without arguments, by name; each returns an array or a tensor.
        seconds: how long to measure in all.

    Returns:
        by name, the largest distance from the first way's answer, in terms of the answer's largest element.
    """
    expected = np.asarray(next(iter(ways.values()))())
    apart = {name: _distance(np.asarray(way()), expected) for name, way in ways.items()}
    best = dict.fromkeys(ways, (math.inf, math.inf))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, way in ways.items():
            wall, processor = _timed(way)
            best[name] = min(best[name][0], wall), min(best[name][1], processor)
    first = next(iter(best.values()))
    table = Table("", "differs by", "a call", "/ first", "processor", "/ first", title=title, title_justify="left")
    for name, found in best.items():
        pairs = zip(found, first, strict=True)
        times = [text for mine, its in pairs for text in (f"{1e3 * mine:.2f} ms", f"{mine / its:.2f}")]
        table.add_row(name, f"{apart[name]:.1e}", *times)
    console = Console()
    console.print(table)
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return apart


def _timed(way: Callable[[], Any]) -> tuple[float, float]:
    """Seconds until a call returns, and processor seconds of all threads."""
    wall, processor = time.perf_counter(), time.process_time()
    way()
    return time.perf_counter() - wall, time.process_time() - processor


def _distance(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())
