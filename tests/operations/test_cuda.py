"""Rows of operations for CUDA, strictly against the file of expected failures; an emulator runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import hloforge
from hloforge.dialect import ops
from tests import ptx
from tests.expectations import judge, read_expectations
from tests.operations import cuda_suite
from tests.suite_child import SuiteChild

KNOWN = read_expectations(cuda_suite.EXPECTATIONS)


# In the quick suite, one of each kind of code; they compile within seconds.
SAMPLE = {"DotGeneral-products/sm_80", "TopK-smallest-ties/sm_80", "SelectAndScatter-same/sm_90", "Fft-real_odd/sm_90"}


def _parameters() -> list[Any]:
    return [
        pytest.param(name, id=name, marks=[] if name in SAMPLE else [pytest.mark.slow])
        for name in cuda_suite.programs()
    ]


@pytest.fixture(scope="module")
def child() -> Iterator[SuiteChild]:
    child = SuiteChild("operations-cuda", cuda_suite.TIMEOUT)
    yield child
    child.close()


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _parameters())
def test_row_for_cuda(name: str, child: SuiteChild) -> None:
    judge(name, child.outcome(name), KNOWN)


def test_every_expectation_names_a_row() -> None:
    assert KNOWN.keys() | SAMPLE <= set(cuda_suite.programs())


def test_code_for_another_architecture_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptx, "architectures", lambda _: {"sm_52"})
    outcome = cuda_suite.outcome("Add/sm_90")
    assert (outcome.stage, outcome.message) == ("compile", "PTX for ['sm_52']")


def test_sums_of_widened_numbers_compile() -> None:
    """IREE's own reduction of what was converted from 32 bits to 64 fails to distribute over its threads."""
    with hloforge.Builder("wide") as builder:
        x = builder.parameter(0, hloforge.Shape.array("f32", 64, 64), "x")
        program = builder.build(ops.reduce(ops.convert_element_type(x, "f64"), 0.0, ops.add, [0, 1]))
    executable = hloforge.compile(program, target="cuda:sm_90", cache=False)
    assert ptx.architectures(executable.vmfb) == {"sm_90"}
