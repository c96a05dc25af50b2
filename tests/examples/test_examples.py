"""The shipped model is what its generator writes, and the examples run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(code: str | Path) -> str:
    words = [sys.executable, str(code)] if isinstance(code, Path) else [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=EXAMPLES, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_model_is_regenerated_byte_by_byte() -> None:
    run("from make_model import MODEL, hlo; assert hlo() == MODEL.read_bytes()")
    assert (EXAMPLES / "model.hlo").stat().st_size < 300_000


def test_the_demo_agrees_with_xla_and_reads_the_digits() -> None:
    shown = run(EXAMPLES / "demo.py")
    assert "10 of 10 digits read right" in shown
    assert shown.count("│ yes ") == 2 and "│ NO " not in shown
    assert "call (median)" in shown


def test_quickstart() -> None:
    shown = run(EXAMPLES / "quickstart.py")
    assert shown.startswith("(images.1: f32[10,16,16,1]{3,2,1,0}) -> (f32[10,10]{1,0}, s32[10]{0})\n")
