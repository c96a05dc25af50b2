"""The README's few numbers: a line for each question that a newcomer asks, from the recorded measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import support
from benchmarks.perf_fuzz import summary
from benchmarks.tables import geometric_mean, ratio, seconds, table, times

FOLDER = Path(__file__).with_name("results")


def headline(results: dict[str, Any]) -> str:
    """A table of what is right and what it costs.

    Args:
        results: benchmarks/results/latest.json; those of compile_time and perf_fuzz are read beside it.
    """
    programs = _recorded("perf_fuzz")["programs"]
    compiled = _recorded("compile_time")["cases"]
    models = [case for case in results["cases"] if case["kind"] == "models"]
    overhead = results["overhead"]
    rows = [[f"{row[0]}, right", f"{row[2]} of {row[1]}"] for row in support.rows()]
    rows += [
        _mean("a call of {} random programs / XLA", programs, summary.ratio),
        _mean("a call of {} models / XLA", models, lambda case: ratio(case, "xla")),
        _mean("compiling {} programs, nothing known before / XLA", compiled, _compile("xla")),
        _mean("… found in the cache / XLA", compiled, _compile("xla", "cached")),
        _mean("compiling {} programs / `iree-compile`", compiled, _compile("plain")),
        [
            "a call that does almost nothing; XLA's",
            "; ".join(seconds(overhead[name]["median"]) for name in ("hloforge", "xla")),
        ],
    ]
    return table(["", "measured"], rows)


def _recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def _compile(other: str, one: str = "hloforge") -> Callable[[dict[str, Any]], float | None]:
    # compile_time's script asks the package that imports this file.
    from benchmarks.compile_time import ratio as compile_ratio

    return lambda case: compile_ratio(case, other, one)


def _mean(title: str, cases: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], float | None]) -> list[str]:
    values = [value for case in cases if (value := of(case))]
    return [title.format(len(values)), f"{times(geometric_mean(values))} (worst {times(max(values))})"]
