"""Every operation's example prints what its docstring says, and the reference page is the docstrings'."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloforge.dialect.op import registry
from hloforge.runtime.reference.engines import ReferenceEngine
from tests.engines import shared_reference
from tests.operations.examples import run_example, sections
from tests.operations.reference_page import PAGE, page


@pytest.fixture(scope="module")
def engines() -> list[ReferenceEngine]:
    return [shared_reference("xla"), shared_reference("interpreter")]


@pytest.mark.parametrize("heading", list(registry()))
def test_example(heading: str, engines: list[ReferenceEngine]) -> None:
    entry = registry()[heading]
    assert "Example" in sections(entry)
    outcome = run_example(entry, engines)
    assert outcome.got == outcome.want


def test_the_reference_page_is_current(engines: list[ReferenceEngine]) -> None:
    assert Path(PAGE).read_text() == page(engines), "run `make tables`"
