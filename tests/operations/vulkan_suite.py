"""Rows on the Vulkan target and Mesa's lavapipe, named and judged as those of ``suite.py``."""

from __future__ import annotations

from pathlib import Path

from tests.expectations import Outcome
from tests.operations.suite import members, outcome_on, programs
from tests.support_vulkan import TARGET

__all__ = ["EXPECTATIONS", "HEADER", "TIMEOUT", "members", "outcome", "programs"]

EXPECTATIONS = Path(__file__).parent / "expected_failures_vulkan.txt"
HEADER = "Rows of operations that the Vulkan target does not compute rightly on lavapipe yet, by element type."
# Seconds for one name: a driver that hangs ends here.
TIMEOUT = 240.0


def outcome(name: str) -> Outcome:
    """Compile and run a row and compare with the reference engines."""
    return outcome_on(TARGET, name, EXPECTATIONS)
