"""Functions of TensorFlow and layers of Keras on the CPU target, against TensorFlow.

``expected_failures.txt`` is strict: a function that fails needs a line there, and one that passes must have none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expectations import read_expectations

pytest.importorskip("tensorflow")

EXPECTED = Path(__file__).with_name("expected_failures.txt")
GROUP = 24
# The CPU target; with a reference engine ("xla"), only what was read is judged.
ENGINE = ""


def _check(kind: str, start: int, count: int) -> None:
    """Every outcome is that of the file."""
    from tests.tensorflow.cases import operators
    from tests.tensorflow.judge import judge
    from tests.tensorflow.layers import layers

    cases = (operators if kind == "operators" else layers)()[start : start + count]
    known = read_expectations(EXPECTED)
    surprises = []
    for name, outcome in judge(cases, ENGINE).items():
        expected = known[name].stage if name in known else ""
        if outcome.stage != expected:
            surprises.append(
                f"{name}: {outcome.stage or 'passes'} {outcome.message[:300]}, expected {expected or 'to pass'}"
            )
    assert not surprises, "\n".join(surprises)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 13 * GROUP, GROUP))
def test_operators(start: int) -> None:
    _check("operators", start, GROUP)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 6 * GROUP, GROUP))
def test_layers(start: int) -> None:
    _check("layers", start, GROUP)
