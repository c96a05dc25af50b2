"""A sample of the conformance rows on the GPU, judged by the engines that judge them on processors."""

from __future__ import annotations

import zlib

from benchmarks.gpu.machine import Machine
from benchmarks.gpu.rows import Row


def rows(share: int) -> list[str]:
    """The names of the rows: one of ``share``, ever the same ones."""
    from tests.operations.suite import programs

    return [name for name in programs() if zlib.crc32(name.encode()) % share == 0]


def row(name: str, machine: Machine) -> Row:
    """Where a row stops and why; an empty stage if it is right."""
    from tests.operations.suite import EXPECTATIONS, elements_left, outcome_on
    from tests.operations.tables import ROWS

    # What fails on processors too is not the GPU's.
    outcome = outcome_on(str(machine.target), ROWS[name], elements_left(name, EXPECTATIONS))
    return {"name": name, "stage": outcome.stage, "reason": (outcome.message.splitlines() or [""])[0][:200]}
