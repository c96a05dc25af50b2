from __future__ import annotations

import zlib

import pytest

from tests.conformance.interpret_suite import EXPECTATIONS, outcome, programs
from tests.expectations import judge, read_expectations
from tests.support import needs_shared

# One case in so many runs in the quick suite.
_SAMPLE = 12


def _parameters() -> list[object]:
    sampled = {name for name in programs() if zlib.crc32(name.encode()) % _SAMPLE == 0}
    return [pytest.param(name, id=name, marks=[] if name in sampled else [pytest.mark.slow]) for name in programs()]


@needs_shared
@pytest.mark.parametrize("name", _parameters())
def test_interpret(name: str) -> None:
    judge(name, outcome(name), read_expectations(EXPECTATIONS))


@needs_shared
def test_every_expectation_names_a_case() -> None:
    assert read_expectations(EXPECTATIONS).keys() <= programs().keys()
