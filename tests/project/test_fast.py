"""Which tests `make test-fast` runs for a change."""

from __future__ import annotations

import pytest

from tests.fast import ROOT, paths_for


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("dialect/shapes.py", "tests/dialect/test_shapes.py"),
        ("tools/run.py", "tests/tools/test_run.py"),
        ("runtime/session/session.py", "tests/runtime/session"),
        ("pipelines/decompose/decompose_sort.py", "tests/pipelines/decompose"),
        ("src/hloforge/jax/jitted.py", "tests/jax"),
        ("tests/tools/test_run.py", "tests/tools/test_run.py"),
        ("README.md", "tests/project"),
        ("src/hloforge/api.py", "tests/project"),
    ],
)
def test_a_changed_file_names_its_tests(name: str, first: str) -> None:
    found = paths_for([name])
    assert found[0] == first or found[0].startswith(f"{first}/")
    assert all((ROOT / path).exists() for path in found)
    assert {"tests/project", "tests/filecheck"} <= set(found)


def test_what_is_gone_names_nothing() -> None:
    assert paths_for(["tests/project/test_gone.py", "docs/x.md"]) == ["tests/project", "tests/filecheck"]
