"""What the programs come to: ratios, their mean and percentiles, tables by family and kind, findings."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import geometric_mean, seconds, table, times

Found = dict[str, Any]

# A program that takes more than this of XLA's time is a finding.
FINDING = 1.3
LENGTH = "XLA's time"
_LENGTHS = (3e-5, 3e-4, 3e-3)


@dataclass(frozen=True)
class Spread:
    """Of ratios."""

    count: int
    mean: float
    median: float
    p95: float
    worst: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Raises ValueError for no values."""
        if not values:
            raise ValueError("no ratios")
        middle, p95 = (float(np.quantile(values, share)) for share in (0.5, 0.95))
        return Spread(len(values), geometric_mean(values), middle, p95, max(values))

    def cells(self) -> list[str]:
        return [str(self.count), *map(times, (self.mean, self.median, self.p95, self.worst))]


HEADER = ["programs", "geometric mean", "median", "p95", "worst"]


def turn_ratio(found: Found) -> float | None:
    """Of the medians of one process."""
    latency = found.get("latency", {})
    if not {"hloforge", "xla"} <= latency.keys():
        return None
    value: float = latency["hloforge"]["median"] / latency["xla"]["median"]
    return value


def ratio(found: Found) -> float | None:
    """hloforge's time of a call over XLA's: the median of all processes that measured it."""
    values = [value for turn in turns(found) if (value := turn_ratio(turn)) is not None]
    return statistics.median(values) if values else None


def turns(found: Found) -> list[Found]:
    """A program's first measurement, and those that were made again."""
    return [found, *found.get("again", [])]


def other_ratio(found: Found, which: str) -> float | None:
    """The same of another number of the latencies: ``best``, the shortest samples, or ``cpu``, processor time. Other
    work on the machine changes both little."""
    values = [
        turn["latency"]["hloforge"][which] / turn["latency"]["xla"][which]
        for turn in turns(found)
        if turn_ratio(turn) is not None and all(turn["latency"][engine].get(which) for engine in ("hloforge", "xla"))
    ]
    return statistics.median(values) if values else None


def compile_ratio(found: Found, *, is_cached: bool = False) -> float | None:
    """Time to compile and load beside XLA's."""
    taken = found.get("compile_seconds", {})
    ours = found.get("cached_seconds") if is_cached else taken.get("hloforge")
    return ours / taken["xla"] if ours and taken.get("xla") else None


def trouble(found: Found) -> str:
    """Why a program is no success: wrong, refused, crashed, too long; empty for a right one."""
    if "error" in found:
        return f"{found['error']} ({found['stage']})" if found.get("stage") else str(found["error"])
    failures = found.get("failures", {})
    if "hloforge" in failures:
        return f"fails: {failures['hloforge']}"
    if "xla" in failures:
        return f"XLA fails: {failures['xla']}"
    wrong = next((turn["wrong"] for turn in turns(found) if turn.get("wrong")), "")
    return f"wrong: {wrong}" if wrong else ""


def findings(all_found: Sequence[Found]) -> list[Found]:
    """What is slower than it may be, the slowest first."""
    slow = [(value, number) for number, found in enumerate(all_found) if (value := ratio(found)) and value > FINDING]
    return [all_found[number] for _, number in sorted(slow, reverse=True)]


def name(found: Found) -> str:
    return f"{found['seed']} {found['kind']} ({found['form']})"


def totals(all_found: Sequence[Found]) -> str:
    """The spreads of all ratios, as a table."""
    rows = []
    measures: tuple[tuple[str, Callable[[Found], float | None]], ...] = (
        ("time of a call / XLA", ratio),
        ("shortest time of a call / XLA", lambda found: other_ratio(found, "best")),
        ("processor time of a call / XLA", lambda found: other_ratio(found, "cpu")),
        ("time to compile / XLA", compile_ratio),
        ("time to load from the cache / XLA's compilation", lambda found: compile_ratio(found, is_cached=True)),
    )
    for label, measure in measures:
        values = {name(found): value for found in all_found if (value := measure(found))}
        if values:
            rows.append([label, *Spread.of(list(values.values())).cells(), max(values, key=values.__getitem__)])
    return table(["ratio", *HEADER, "which"], rows)


def length(found: Found) -> str:
    """How long a call of XLA's takes: in short ones most is the overhead of a call."""
    if turn_ratio(found) is None:
        return "not measured"
    taken = found["latency"]["xla"]["median"]
    return next((f"below {seconds(bound)}" for bound in _LENGTHS if taken < bound), f"{seconds(_LENGTHS[-1])} and more")


def by(all_found: Sequence[Found], key: str) -> str:
    """A table by ``family``, ``kind``, ``form`` or ``XLA's time``, the slowest first."""
    groups: dict[str, list[Found]] = defaultdict(list)
    for found in all_found:
        groups[length(found) if key == LENGTH else found[key]].append(found)
    rows = []
    for label, members in groups.items():
        values = [value for found in members if (value := ratio(found))]
        compiles = [value for found in members if (value := compile_ratio(found))]
        troubled = sum(1 for found in members if trouble(found))
        if values:
            compiled = times(geometric_mean(compiles)) if compiles else "–"
            rows.append((geometric_mean(values), [label, *Spread.of(values).cells(), compiled, str(troubled)]))
        else:
            rows.append((float("inf"), [label, "0", "–", "–", "–", "–", "–", str(troubled)]))
    ordered = [row for _, row in sorted(rows, key=lambda row: -row[0])]
    return table([key, *HEADER, "compile", "troubles"], ordered)


def finding_table(slow: Sequence[Found]) -> str:
    """One row a finding: its ratios (median, each, of shortest samples, of processor time), latencies, arguments."""
    rows = []
    for found in slow:
        each = ", ".join(times(turn_ratio(turn)) for turn in turns(found))
        latency = found["latency"]
        rows.append(
            [
                name(found),
                times(ratio(found)),
                each,
                times(other_ratio(found, "best")),
                times(other_ratio(found, "cpu")),
                seconds(latency["hloforge"]["median"]),
                seconds(latency["xla"]["median"]),
                f"`{found['label']}`",
            ]
        )
    return table(["program", "ratio", "each time", "shortest", "processor time", "hloforge", "XLA", "arguments"], rows)


def trouble_lines(all_found: Sequence[Found]) -> list[str]:
    return [f"- {name(found)}: {trouble(found)}" for found in all_found if trouble(found)]


def report(all_found: Sequence[Found], *, kinds: int | None = None) -> str:
    """Everything, as markdown.

    Args:
        kinds: how many rows of the table by kind; all if None.
    """
    parts: list[str] = []
    if any(ratio(found) for found in all_found):
        by_kind = by(all_found, "kind").splitlines()
        parts += [totals(all_found), by(all_found, "family"), by(all_found, "form"), by(all_found, LENGTH)]
        parts += ["\n".join(by_kind if kinds is None else by_kind[: kinds + 2])]
    slow = findings(all_found)
    if slow:
        parts += [f"Slower than {FINDING} of XLA's time ({len(slow)}):", finding_table(slow)]
    lines = trouble_lines(all_found)
    if lines:
        parts += [f"Wrong, refused, crashed or too long ({len(lines)}):", "\n".join(lines)]
    return "\n\n".join(parts)
