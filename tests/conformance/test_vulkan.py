from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests.conformance.vulkan_suite import EXPECTATIONS, TIMEOUT, programs
from tests.expectations import judge, read_expectations
from tests.suite_child import SuiteChild
from tests.support import needs_shared
from tests.support_vulkan import needs_vulkan

# One case in so many runs in the quick suite.
_SAMPLE = 100


@pytest.fixture(scope="module")
def child() -> Iterator[SuiteChild]:
    child = SuiteChild("interpret-vulkan", TIMEOUT)
    yield child
    child.close()


def _parameters() -> list[object]:
    sampled = {name for name in programs() if zlib.crc32(name.encode()) % _SAMPLE == 0}
    return [pytest.param(name, id=name, marks=[] if name in sampled else [pytest.mark.slow]) for name in programs()]


@needs_shared
@needs_vulkan
@pytest.mark.parametrize("name", _parameters())
def test_interpret_on_vulkan(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), read_expectations(EXPECTATIONS))


@needs_shared
def test_every_expectation_names_a_case() -> None:
    assert read_expectations(EXPECTATIONS).keys() <= programs().keys()
