"""Rows of operations for 64-bit Arm, strictly against the file of expected failures; an emulator runs their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("unicorn", reason="unicorn, the emulator of processors, is not installed")

from tests.expectations import judge, read_expectations
from tests.operations import aarch64_suite
from tests.suite_child import SuiteChild

KNOWN = read_expectations(aarch64_suite.EXPECTATIONS)
# In the quick suite, one of each kind of code.
SAMPLE = {
    "Tanh",
    "ConvertElementType-to_f32",
    "DotGeneral-products",
    "ConvWithGeneralPadding-feature-groups",
    "ReduceWindow-add",
    "Sort-stable",
    "Fft-real_odd",
    "Cholesky",
}


def _parameters() -> list[Any]:
    return [
        pytest.param(name, id=name, marks=[] if name in SAMPLE else [pytest.mark.slow])
        for name in aarch64_suite.programs()
    ]


@pytest.fixture(scope="module")
def child() -> Iterator[SuiteChild]:
    child = SuiteChild("operations-aarch64", aarch64_suite.TIMEOUT)
    yield child
    child.close()


@pytest.mark.wide(4)
@pytest.mark.parametrize("name", _parameters())
def test_row_for_aarch64(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), KNOWN)


def test_every_expectation_names_a_row() -> None:
    assert KNOWN.keys() | SAMPLE <= set(aarch64_suite.programs())
