"""The Python of the guides runs, block after block, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ["builder.md", "host-calls.md", "jax.md", "onnx.md", "replicas.md", "shapes.md", "targets.md", "tensorflow.md"]


@pytest.mark.parametrize("name", GUIDES)
def test_guide(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert blocks
    # From a file, so that tracebacks and inspect find the source.
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "guide.py"
    script.write_text("\n\n".join(blocks))
    namespace = {"__name__": "guide", "__file__": str(script)}
    exec(compile(script.read_text(), str(script), "exec"), namespace)
    out = capsys.readouterr().out
    for signature in re.findall(r"^print\(\w+\.signature\)  # (.+)$", text, re.M):
        assert signature in out
