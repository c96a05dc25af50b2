"""The examples on models that packages ship, beside onnxruntime; each ends with its own assertions."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# By example, what it needs, and a line that it prints.
NEEDS = {
    "file_types": (["magika"], "markdown"),
    "notes": (["basic_pitch", "tflite"], "C4 E4 G4"),
    "read_text": (["rapidocr_onnxruntime"], "3141592653"),
    "speech": (["silero_vad"], "speech from 0.99 s"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_example(name: str) -> None:
    packages, line = NEEDS[name]
    missing = [package for package in ("onnx", "onnxruntime", *packages) if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: the extras `onnx`, `tflite` and the example's first lines")
    done = subprocess.run(
        [sys.executable, f"{name}.py"], cwd=EXAMPLES, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    assert line in done.stdout
