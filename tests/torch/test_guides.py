"""The Python of the guides on PyTorch runs; slow, for it compiles convolutions of several sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import test_guides as guides

pytest.importorskip("torch", reason="needs the extra `torch`")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pytorch.md", "torch-compile.md"])
def test_guide(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    guides.test_guide(name, tmp_path, capsys, monkeypatch)
