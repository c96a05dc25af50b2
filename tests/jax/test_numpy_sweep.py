"""A sample of the sweep of JAX's functions; ``python -m tests.jax.numpy_sweep`` runs all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

from tests.jax.numpy_sweep import ROOT

_SAMPLE = ("ufuncs/ldexp$", "reducers/sum_where$", "indexing/take_fill$")
_X32 = (
    "edges/(narrow|special_orders)|ufuncs/(weak|cast$)|reducers/(mean_dtype|var)$|indexing/get$|"
    "functions/random.(normal_t|exponential_t)|control/custom_linear"
)
_SLOW = (
    "ufuncs/[a-d]|reducers/[a-c]",
    "shaping/",
    "indexing/(at_|get)",
    "functions/(image|signal|random.[a-n])",
    "linear_algebra/[a-h]",
    "lax_(functions/lax.[a-c]|arrays/)",
    "control/(scan|fori|cond)",
    "libraries/(sparse|checkify|ufuncs)",
)


@pytest.mark.parametrize("pattern", _SAMPLE)
def test_a_sample_agrees_with_the_cpu(pattern: str, tmp_path: Path) -> None:
    _agrees(pattern, [], tmp_path / "log")


@pytest.mark.slow
def test_32_bits_agree_with_the_cpu(tmp_path: Path) -> None:
    _agrees(_X32, ["--no-x64"], tmp_path / "log")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", _SLOW)
def test_more_agrees_with_the_cpu(pattern: str, tmp_path: Path) -> None:
    _agrees(pattern, [], tmp_path / "log")


def _agrees(pattern: str, options: list[str], log: Path) -> None:
    command = [sys.executable, "-m", "tests.jax.numpy_sweep", "--only", pattern, "--log", str(log), *options]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    assert process.returncode == 0, process.stdout + process.stderr[-2000:]
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    stages = [verdict["stage"] for row in rows for verdict in row.get("verdicts", ())]
    assert stages.count("passed") > 0.9 * len(stages)
