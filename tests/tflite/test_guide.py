"""The Python of docs/tflite.md runs, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tflite.md"


@pytest.mark.slow
def test_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("tensorflow", "tflite"):
        pytest.importorskip(package, reason=f"the package {package}, which the page uses, is not installed")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec(compile("\n\n".join(blocks), "tflite.md", "exec"), {"__name__": "guide"})
