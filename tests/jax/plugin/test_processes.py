"""Several processes that ``jax.distributed.initialize`` joins, on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="the extra jax is not installed")
pytest.importorskip("hloforge.jax.plugin._pjrt", reason="the extension module was not built")

CHILD = Path(__file__).with_name("processes_child.py")


def start(name: str, count: int, platform: dict[str, str]) -> list[tuple[int, str, str]]:
    """Run a check of ``processes_child.py`` in processes of two devices: the status and the output of each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | platform | {"HLOFORGE_JAX_DEVICES": "2", "OPENBLAS_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(CHILD), name, str(count), str(number), str(port)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        outputs = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *output) for process, output in zip(processes, outputs, strict=True)]


@pytest.mark.parametrize(
    ("name", "count", "platform"),
    [
        ("devices_and_arrays", 2, {"JAX_PLATFORMS": "hloforge"}),
        pytest.param(
            *("devices_and_arrays", 4, {"JAX_PLATFORMS": "cpu", "HLOFORGE_JAX_PLATFORM": "cpu"}), marks=pytest.mark.slow
        ),
        pytest.param("errors", 2, {"JAX_PLATFORMS": "cpu", "HLOFORGE_JAX_PLATFORM": "cpu"}, marks=pytest.mark.slow),
    ],
)
def test_processes_are_one_mesh(name: str, count: int, platform: dict[str, str]) -> None:
    for status, out, err in start(name, count, platform):
        assert out.endswith("well\n"), err[-4000:]
        assert status == 0, err[-4000:]


def test_a_killed_process_is_noticed_at_once() -> None:
    (status, out, err), (killed, *_) = start("killed", 2, {"JAX_PLATFORMS": "hloforge"})
    assert killed == -signal.SIGKILL
    assert out.endswith("well\n"), err[-4000:]
    assert status == 0
