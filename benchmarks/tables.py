"""Numbers as people read them, and markdown tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Any

Case = dict[str, Any]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def seconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 1e-3:
        return f"{1e6 * value:.3g} µs"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def times(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1g}" if value < 0.01 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def median(case: Case, engine: str) -> float | None:
    """Seconds of a call; of plain IREE on the better of its devices."""
    latencies = case.get("latency", {})
    names = [name for name in latencies if name.partition(" ")[0] == engine]
    return min((latencies[name]["median"] for name in names), default=None)


def cpu_ratio(case: Case) -> float | None:
    """hloforge's processor time over XLA's, of all threads: other work on the machine changes it little."""
    latencies = case.get("latency", {})
    if not {"hloforge", "xla"} <= latencies.keys():
        return None
    ours, theirs = (latencies[name].get("cpu", 0.0) for name in ("hloforge", "xla"))
    return ours / theirs if ours and theirs else None


def ratio(case: Case, other: str, one: str = "hloforge") -> float | None:
    """An engine's median over another's; below 1 it is ahead."""
    ours, theirs = median(case, one), median(case, other)
    return ours / theirs if ours and theirs else None
