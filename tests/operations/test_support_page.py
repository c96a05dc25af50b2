"""docs/support.md says what the capability tables answer for the rows' programs today."""

from __future__ import annotations

import pytest

from hloforge.pipelines.capability.capabilities import TABLES
from tests.operations import support_page
from tests.operations.headings import GROUPS


@pytest.fixture(scope="module")
def text() -> str:
    return support_page.PAGE.read_text()


@pytest.mark.parametrize("group", GROUPS)
def test_a_section_is_current(text: str, group: str) -> None:
    assert support_page.section(group) in text, "run: make tables"


def test_the_rest_is_current(text: str) -> None:
    body = text.partition("## ")[2]
    assert support_page.totals_table(body) in text, "run: make tables"
    assert support_page.reasons() in text, "run: make tables"
    assert text.endswith(support_page.failing().rstrip() + "\n"), "run: make tables"


def test_the_totals_count_every_pair() -> None:
    body = support_page.section("slicing")
    counted = support_page.totals(body)
    assert counted.keys() == TABLES.keys()
    assert all(counts.total() == len(support_page.answers("slicing", target)) for target, counts in counted.items())


def test_what_a_row_says_of_one_form() -> None:
    found = support_page.answers("shape", "cpu")
    assert {str(answer) for answer in found["Rev", "stablehlo.reverse", "f32"]} == {"native"}
    assert "`legalize-unsigned-reverse`" in map(str, found["Rev", "stablehlo.reverse", "u32"])
