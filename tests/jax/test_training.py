"""Programs of frameworks, unchanged, with hloforge as JAX's backend: the same losses and gradients as on JAX's CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "linen": ("flax", "optax"),
    "nnx": ("flax", "optax"),
    "equinox": ("equinox", "optax"),
    "haiku": ("haiku", "optax"),
    "keras": ("keras",),
}


def trained(platform: str, name: str, file: Path) -> dict[str, np.ndarray]:
    # Frameworks run hundreds of small programs one by one, many of them several times.
    environment = os.environ | {"JAX_PLATFORMS": platform, "HLOFORGE_CACHE_DIR": str(file.parent / "cache")}
    command = [sys.executable, "-m", "tests.jax.training", str(file), name]
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-4000:]
    return dict(np.load(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_training(name: str, tmp_path: Path) -> None:
    for package in PACKAGES[name]:
        pytest.importorskip(package, reason=f"{package} is not installed")
    got = trained("hloforge", name, tmp_path / "hloforge.npz")
    expected = trained("cpu", name, tmp_path / "cpu.npz")
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(got[key], value, rtol=1e-4, atol=1e-5, err_msg=key)
