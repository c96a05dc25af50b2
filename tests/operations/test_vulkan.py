"""Every row on Mesa's lavapipe, strictly against the file of expected failures."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.expectations import judge, read_expectations
from tests.operations import vulkan_suite
from tests.operations.tables import ROWS
from tests.suite_child import SuiteChild
from tests.support_vulkan import needs_vulkan

KNOWN = read_expectations(vulkan_suite.EXPECTATIONS)


def _sampled(names: Iterable[str]) -> list[Any]:
    """A few names in the quick suite, ever the same ones."""
    return [
        pytest.param(name, id=name, marks=[] if zlib.crc32(name.encode()) % 100 == 0 else [pytest.mark.slow])
        for name in names
    ]


@pytest.fixture(scope="module")
def child() -> Iterator[SuiteChild]:
    child = SuiteChild("operations-vulkan", vulkan_suite.TIMEOUT)
    yield child
    child.close()


@needs_vulkan
@pytest.mark.parametrize("name", _sampled(vulkan_suite.programs()))
def test_row_on_vulkan(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), {})


@needs_vulkan
@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_known_failure_on_vulkan(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), KNOWN)


def test_every_expectation_names_a_row() -> None:
    assert KNOWN.keys() <= {name for row_id in ROWS for name in vulkan_suite.members(row_id)}
