"""Rows in f32 and s32 on the Vulkan target and Mesa's lavapipe, named and judged as those of ``suite.py``."""

from __future__ import annotations

from pathlib import Path

from tests.expectations import Outcome
from tests.operations import suite
from tests.operations.tables import ROWS
from tests.support_vulkan import TARGET

__all__ = ["EXPECTATIONS", "HEADER", "TIMEOUT", "members", "outcome", "programs"]

EXPECTATIONS = Path(__file__).parent / "expected_failures_vulkan.txt"
HEADER = "Rows of operations that the Vulkan target does not compute rightly on lavapipe yet, by element type."
# Seconds for one name: a driver that hangs ends here.
TIMEOUT = 240.0
# Others were run by samples alone: all of them take hours.
_ELEMENTS = ("f32", "s32")


def programs() -> list[str]:
    """The rows that have one of the element types."""
    return [name for name in suite.programs() if members(name)]


# What was wrong, or is refused, in another type alone.
_FURTHER = ("Cholesky/bf16", "DotGeneral/f8e4m3", "Fft-power_of_two/c64")


def members(row_id: str) -> list[str]:
    """The names of a row's element types, of those that are run."""
    return [name for name in suite.members(row_id) if name.partition("/")[2] in _ELEMENTS or name in _FURTHER]


def outcome(name: str) -> Outcome:
    """Compile and run a row and compare with the reference engines."""
    row_id = name.partition("/")[0]
    run = [member.partition("/")[2] for member in members(row_id)]
    elements = [element for element in suite.elements_left(name, EXPECTATIONS) if element in run]
    return suite.outcome_on(TARGET, ROWS[row_id], elements)
