"""Every row on the CPU target, strictly against the file of expected failures."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.expectations import Outcome, judge, read_expectations
from tests.operations import engines_suite, suite
from tests.operations.tables import ROWS
from tests.suite_child import SuiteChild

KNOWN = read_expectations(suite.EXPECTATIONS)
DIFFERENCES = read_expectations(engines_suite.EXPECTATIONS)


def _sampled(names: Iterable[str], one_in: int) -> list[Any]:
    """One name in so many runs in the quick suite, ever the same ones."""
    return [
        pytest.param(name, id=name, marks=[] if zlib.crc32(name.encode()) % one_in == 0 else [pytest.mark.slow])
        for name in names
    ]


@pytest.fixture(scope="module")
def child() -> Iterator[SuiteChild]:
    child = SuiteChild("operations", suite.TIMEOUT)
    yield child
    child.close()


@pytest.fixture(scope="module")
def engines() -> Iterator[SuiteChild]:
    child = SuiteChild("engines", engines_suite.TIMEOUT)
    yield child
    child.close()


@pytest.mark.wide(10)
@pytest.mark.parametrize("name", list(ROWS))
def test_row(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), {})


# Most known failures end a process, which costs a second.
@pytest.mark.parametrize("name", _sampled(KNOWN, one_in=10))
def test_known_failure(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), KNOWN)


# `test_row` runs every operation; that both engines read it alike changes with the builder alone.
@pytest.mark.wide(6)
@pytest.mark.parametrize("name", _sampled(ROWS, one_in=8))
def test_engines_agree(name: str, engines: SuiteChild) -> None:
    """XLA's client and StableHLO's interpreter read the same operation out of what the builder emits."""
    judge(name, engines.outcome(name), {})


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _sampled(DIFFERENCES, one_in=10))
def test_known_difference(name: str, engines: SuiteChild) -> None:
    judge(name, engines.outcome(name), DIFFERENCES)


@pytest.mark.wide(6)
@pytest.mark.parametrize("name", [row_id for row_id, row in ROWS.items() if row.expected is not None])
def test_value_of_the_source(name: str, engines: SuiteChild) -> None:
    assert engines.outcome(f"{name}=") == Outcome()


def test_every_expectation_names_a_row() -> None:
    names = {name for row_id in ROWS for name in suite.members(row_id)}
    assert KNOWN.keys() <= names
    assert DIFFERENCES.keys() <= names
