"""Eight threads call jitted functions at once: no deadlock, right answers, bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="jax is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jit", "backend"])
def test_eight_threads(engine: str) -> None:
    environment = os.environ | {"JAX_PLATFORMS": "hloforge" if engine == "backend" else "cpu"}
    command = [sys.executable, "-m", "tests.jax.soak", engine, "10"]
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr[-4000:]
