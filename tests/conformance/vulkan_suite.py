"""StableHLO's own interpreter tests, run through hloforge on Mesa's lavapipe."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.interpret_suite import outcome_on, programs
from tests.expectations import Outcome
from tests.support_vulkan import TARGET

__all__ = ["EXPECTATIONS", "HEADER", "TIMEOUT", "outcome", "programs"]

EXPECTATIONS = Path(__file__).parent / "expected_failures_vulkan.txt"
HEADER = "Programs of StableHLO's interpreter tests that hloforge does not run rightly on lavapipe yet."
# Seconds for one program: a driver that hangs ends here.
TIMEOUT = 120.0


def outcome(name: str) -> Outcome:
    """Compile and run a case and compare with the values in its test."""
    return outcome_on(TARGET, name)
