"""Sessions in the children of a process: they work or say that they do not, and never hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hloforge

FORK = """
import os, signal, sys
import numpy as np
import hloforge
x = np.ones(4, np.float32)
session = hloforge.load(sys.argv[1], device=sys.argv[2])
session(x)
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        print(session(x).sum(), flush=True)
    except hloforge.ExecutionError as error:
        print(error.message, flush=True)
    os._exit(0)
status = os.waitpid(child, 0)[1]
assert session(x).sum() == 8  # the parent's goes on
sys.exit(os.waitstatus_to_exitcode(status))
"""

PROGRAM = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] add(x, x) }"

SPAWN = """
import multiprocessing, sys
import numpy as np
import hloforge
def work(path):
    return float(hloforge.load(path, device="local-task")(np.ones(4, np.float32)).sum())
if __name__ == "__main__":
    hloforge.load(sys.argv[1], device="local-task")(np.ones(4, np.float32))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [sys.argv[1]])[0])
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forks") / "twice.vmfb"
    hloforge.compile(PROGRAM, output=path)
    return path


def run(*command: object) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_a_session_after_a_fork(path: Path, device: str) -> None:
    """Kernels of our own are called without IREE's runtime, whose threads a forked process lacks."""
    assert run("-c", FORK, path, device) == (0, "8.0\n")


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("local-sync", "8.0"),
        ("local-task", "the session was loaded before this process was forked: local-task works in the parent alone"),
    ],
)
def test_a_session_of_iree_after_a_fork(device: str, said: str, iree_codegen: None, tmp_path: Path) -> None:
    path = tmp_path / "twice.vmfb"
    hloforge.compile(PROGRAM, output=path)
    assert run("-c", FORK, path, device) == (0, f"{said}\n")


def test_a_spawned_process_loads_its_own(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(SPAWN)
    assert run(script, path) == (0, "8.0\n")
