"""The node tests of the package onnx: a sample in `make test`, all of them in `make test-all`.

``expected_failures.txt`` is strict: a test without a line that fails, and one with a line that passes, fails the run.
``python -m tests.onnx.record`` measures the tests anew and writes the file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx")

from tests.expectations import Outcome, read_expectations
from tests.onnx.node_cases import Case, cases_of, folders, judge, model_case, modules

EXPECTED = Path(__file__).with_name("expected_failures.txt")
# One or two of each category of operators.
SAMPLE = (
    *("add", "concat", "conv", "gathernd", "gridsample", "if_", "loop", "lstm"),
    *("maxpool", "quantizelinear", "roialign", "scan", "slice", "softmax", "stft", "topk"),
)
# Modules, or folders with models, of one test.
GROUP = 8


def _groups(names: list[str]) -> list[list[str]]:
    return [names[start : start + GROUP] for start in range(0, len(names), GROUP)]


def _check(cases: list[Case]) -> None:
    """Every outcome is that of the file."""
    known = read_expectations(EXPECTED)
    surprises = []
    for name, outcome in judge(cases).items():
        expected = known[name].stage if name in known else ""
        if outcome.stage != expected:
            surprises.append(f"{name}: {_told(outcome)}, expected {expected or 'to pass'}")
    assert not surprises, "\n".join(surprises)


def _told(outcome: Outcome) -> str:
    return f"{outcome.stage}: {outcome.message[:300]}" if outcome.stage else "passes"


@pytest.mark.parametrize("names", _groups(sorted(SAMPLE)), ids=lambda names: names[0])
def test_sample(names: list[str]) -> None:
    _check([case for name in names for case in cases_of(name)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", _groups([name for name in modules() if name not in SAMPLE]), ids=lambda names: names[0]
)
def test_nodes(names: list[str]) -> None:
    _check([case for name in names for case in cases_of(name)])


@pytest.mark.slow
@pytest.mark.parametrize("names", _groups(folders()), ids=lambda names: names[0].replace("/", "-"))
def test_models(names: list[str]) -> None:
    _check([model_case(name) for name in names])
