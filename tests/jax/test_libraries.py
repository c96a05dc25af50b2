"""Programs of libraries, unchanged, with hloforge as JAX's backend: as on JAX's CPU.

The libraries come with ``pip install '.[jax-libraries]'``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
from tests.jax.libraries import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
# They refuse platforms whose names they do not know.
KNOWS_NAMES = {"brax", "mujoco.mjx"}
# Relative and absolute, of results and of those that stand under ``about``.
TOLERANCE, ABOUT = (2e-4, 1e-5), (0.1, 0.15)


def results(name: str, environment: dict[str, str], file: Path) -> dict[str, np.ndarray]:
    command = [sys.executable, "-m", "tests.jax.libraries", str(file), name]
    variables = os.environ | environment | {"HLOFORGE_CACHE_DIR": str(file.parent / "cache")}
    process = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-4000:]
    return dict(np.load(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_library(name: str, tmp_path: Path) -> None:
    for package in (name.split(".")[0], name):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    ours = {"JAX_PLATFORMS": "hloforge"}
    if name in KNOWS_NAMES:
        ours = {"JAX_PLATFORMS": "cpu", "HLOFORGE_JAX_PLATFORM": "cpu"}
    expected = results(name, {"JAX_PLATFORMS": "cpu"}, tmp_path / "cpu.npz")
    got = results(name, ours, tmp_path / "hloforge.npz")
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        relative, absolute = ABOUT if "about" in key else TOLERANCE
        np.testing.assert_allclose(got[key], value, rtol=relative, atol=absolute, err_msg=key)
