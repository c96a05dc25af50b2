"""Samples of PyTorch's own operator database: a few compiled by hloforge in `make test`, all in `make test-all`.

They run on JAX's CPU client, which is quick; what is judged is the graph that hloforge imports. Those that call the
host are compiled by hloforge.
``expected_failures.txt`` is strict: a sample without a line that fails, and one with a line that passes, fails the run.
``python -m tests.torch.record`` measures the samples anew and writes the file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

import torch

from tests.expectations import Outcome, read_expectations
from tests.torch import judging
from tests.torch.opinfo import cases_of, judge, operators

EXPECTED = Path(__file__).with_name("expected_failures.txt")
# Samples of each operator.
COUNT = 2
# Quick ones of several categories.
SAMPLE = (
    *("div.floor_rounding", "argmax", "index_put", "scatter_reduce.amin", "topk"),
    *("nn.functional.layer_norm", "linalg.solve", "view_as_complex"),
)
GROUP = 16


def _told(outcome: Outcome) -> str:
    return f"{outcome.stage}: {outcome.message[:300]}" if outcome.stage else "passes"


def test_sample_compiled_by_hloforge() -> None:
    outcomes = judging.judge([case for name in SAMPLE for case in cases_of(name, 1)])
    assert {name: _told(outcome) for name, outcome in outcomes.items() if outcome.stage} == {}


def test_products_of_flags_that_meet_at_an_element() -> None:
    """Which JAX does not multiply."""
    outcomes = [judge(case) for case in cases_of("scatter_reduce.prod", 3, [torch.bool])]
    assert [_told(outcome) for outcome in outcomes] == ["passes"] * 3


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("special.zeta", torch.int64),
        ("logcumsumexp", torch.complex128),
        ("_upsample_bilinear2d_aa", torch.uint8),
        ("histc", torch.bfloat16),
        ("uniform", torch.complex64),
        ("scatter", torch.bool),
    ],
)
def test_samples_of_other_types(name: str, dtype: torch.dtype) -> None:
    """Poles at whole numbers, branches of the logarithm, weights of bytes, edges of bins, and sums of flags."""
    outcomes = {case.name: _told(judge(case)) for case in cases_of(name, 4, [dtype])}
    assert set(outcomes.values()) == {"passes"}, outcomes


@pytest.mark.parametrize("name", ["complex", "view_as_complex"])
def test_complex_numbers_of_half_precision_are_refused(name: str) -> None:
    (case,) = cases_of(name, 1, [torch.float16])
    outcome = judge(case)
    assert (outcome.stage, outcome.message) == ("import", "tensors of torch.complex32 are not imported")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(GROUP))
def test_operators(part: int) -> None:
    known = read_expectations(EXPECTED)
    surprises = []
    for name in sorted(operators())[part::GROUP]:
        for case in cases_of(name, COUNT):
            outcome = judge(case)
            if "NOT_FOUND" in outcome.message:
                # Calls of the host, of which JAX's client knows nothing.
                outcome = judging.judge([case])[case.name]
            expected = known[case.name].stage if case.name in known else ""
            if outcome.stage != expected:
                surprises.append(f"{case.name}: {_told(outcome)}, expected {expected or 'to pass'}")
    assert not surprises, "\n".join(surprises)
