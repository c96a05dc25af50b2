"""Devices that are processes, started by ``mpiexec`` on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.runtime.replicas.mpi import Rank
from tests.runtime.replicas.test_replicas import uneven
from tests.tools.test_feeding import TWO

pytest.importorskip("mpi4py.MPI", reason="the extra mpi is not installed", exc_type=(ImportError, RuntimeError))

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.skipif(not (BIN / "mpiexec").exists(), reason="no mpiexec")


def start(ranks: int, *command: str) -> subprocess.CompletedProcess[str]:
    words = [BIN / "mpiexec", "-n", str(ranks), sys.executable, "-m", *command]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        (2, "exchanges"),
        (3, "combines"),
        (2, "cut"),
        pytest.param(2, "trains", marks=pytest.mark.slow),
        pytest.param(4, "trains", marks=pytest.mark.slow),
    ],
)
def test_ranks_compute_what_they_should(ranks: int, name: str) -> None:
    done = start(ranks, "tests.runtime.mpi_rank", name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("well") == ranks


def test_a_rank_that_ends_early_is_named() -> None:
    done = start(2, "tests.runtime.mpi_rank", "uneven")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("told so") == 1


def test_a_process_that_fails_before_it_begins_ends_the_others() -> None:
    done = start(2, "tests.runtime.mpi_rank", "early")
    assert done.returncode != 0
    # What the other one says may be cut short: mpiexec ends it as soon as the first one has failed.
    assert "failed early" in done.stderr


def test_a_collective_that_somebody_does_not_begin_ends_in_time() -> None:
    done = start(2, "tests.runtime.mpi_rank", "stuck")
    assert done.returncode != 0
    assert "device 0 waits in all_reduce number 0 after 1 s for device 1" in done.stderr


@pytest.mark.slow
def test_a_killed_rank_ends_the_others() -> None:
    done = start(2, "tests.runtime.mpi_rank", "killed")
    assert done.returncode != 0
    assert "well" not in done.stdout
    assert "Killed" in done.stdout + done.stderr or "replica 0 waits in all_reduce" in done.stderr


def test_the_command_line_runs_a_rank_a_process(tmp_path: Path) -> None:
    uneven().save(tmp_path / "sum.vmfb")
    np.save(tmp_path / "turns.npy", np.array([2, 2], np.int32))
    inputs = [f"--input=@{tmp_path / 'turns.npy'}", "--input=2x2xf32=1 2 3 4"]
    done = start(2, "hloforge.tools.main", "run", str(tmp_path / "sum.vmfb"), "--mpi", *inputs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2x2xf32=[8 12][8 12]"


def test_each_process_feeds_its_device(tmp_path: Path) -> None:
    (tmp_path / "two.hlo").write_text(TWO.replace("GROUPS", "{0,1}"))
    run = ["hloforge.tools.main", "run", str(tmp_path / "two.hlo"), "--mpi", "--infeed=2x2xf32=1 2 3 4"]
    done = start(2, *run, "--infeed=2xs32=7 8")
    assert done.returncode == 0, done.stderr
    values = [line for line in done.stdout.splitlines() if not line.endswith(":")]
    assert values == ["2x2xf32=[4 6][4 6]", "s32=7", "s32=8"]
    assert "outfeed[0] of replica 1:" in done.stdout
    short = start(2, *run)
    assert short.returncode != 0
    assert "infeed of replica 1: the program takes more items than were given: 1" in short.stderr


def test_processes_and_devices_have_to_be_as_many() -> None:
    with pytest.raises(hloforge.dialect.errors.OptionError, match="are 2 devices, and mpiexec started 1 processes"):
        Rank(uneven(), 2)
