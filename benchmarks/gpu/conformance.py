"""A sample of the conformance rows on the GPU, judged by the engines that judge them on processors."""

from __future__ import annotations

import zlib
from typing import Any

from benchmarks.gpu.machine import Machine


def rows(share: int) -> list[str]:
    """The names of the rows: one of ``share``, ever the same ones."""
    from tests.operations.suite import programs

    return [name for name in programs() if zlib.crc32(name.encode()) % share == 0]


def conformance(machine: Machine, share: int) -> dict[str, Any]:
    """How many rows of the sample are right, and of each other one where it stops and why."""
    from tests.operations.suite import EXPECTATIONS, elements_left, outcome_on
    from tests.operations.tables import ROWS

    names = rows(share)
    failures = []
    for name in names:
        # What fails on processors too is not the GPU's.
        outcome = outcome_on(str(machine.target), ROWS[name], elements_left(name, EXPECTATIONS))
        if outcome.stage:
            failures.append(
                {"name": name, "stage": outcome.stage, "reason": (outcome.message.splitlines() or [""])[0][:200]}
            )
    return {"rows": len(names), "right": len(names) - len(failures), "failures": failures}
