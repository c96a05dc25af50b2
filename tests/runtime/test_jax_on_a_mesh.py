"""Programs that JAX made for four devices: partitioned by XLA, and mapped over shards, against JAX's own results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hloforge

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mesh")
    # In a process of its own: JAX counts its devices once.
    subprocess.run([sys.executable, "-m", "tests.runtime.jax_on_a_mesh", str(path)], cwd=ROOT, check=True, timeout=120)
    return path


@pytest.mark.parametrize("fold", [False, True], ids=["threads", "folded"])
def test_what_xla_partitioned_runs_on_its_partitions(folder: Path, fold: bool) -> None:
    shards = np.load(folder / "partitioned.npz")
    program = hloforge.replicate(folder / "partitioned.hlo", partitions=4, fold=fold, cache=False, timeout=30)
    results = program(shards["w1"], shards["w2"], shards["x"])
    for actual, name in zip(results, ("value", "first", "second"), strict=True):
        np.testing.assert_allclose(actual, shards[name], rtol=1e-5, atol=1e-6)


def test_what_is_mapped_over_shards_runs_on_whole_arrays(folder: Path) -> None:
    arrays = np.load(folder / "mapped.npz")
    np.testing.assert_allclose(hloforge.compile(folder / "mapped.mlir")(arrays["y"]), arrays["result"], rtol=1e-5)
