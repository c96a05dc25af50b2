"""The page of families of models: its rows are those that the benchmark measures."""

from __future__ import annotations

import pytest

from benchmarks.families import _HEAD, PAGE, _error, families


def test_page_has_all_families() -> None:
    page = PAGE.read_text()
    assert page.startswith(_HEAD)
    rows = [line.split(" | ")[0].removeprefix("| ") for line in page.removeprefix(_HEAD).splitlines()]
    assert rows == [family.name for family in families()]


def test_a_family_is_right() -> None:
    pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxmltools")
    pair = next(family for family in families() if family.name == "logistic regression").pair()
    assert max(_error(*each) for each in zip(pair.ours(), pair.theirs(), strict=True)) < 1e-5
