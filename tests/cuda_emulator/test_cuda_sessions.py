"""Sessions on the emulated GPU, in a process of their own: one that has loaded it has an NVIDIA GPU ever after."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emulator.library import environment
from tests.cuda_emulator.marks import needs_emulator

pytestmark = pytest.mark.wide(3)

_ROOT = Path(__file__).resolve().parents[2]
# Seconds; a stream that hangs ends here.
_TIMEOUT = 600


# The kernels take as long as the rest.
@needs_emulator
@pytest.mark.parametrize("chosen", ["kernels_of_each_kind", "not kernels_of_each_kind"])
def test_sessions_on_cuda(chosen: str) -> None:
    module = "tests/cuda_emulator/cuda_sessions.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", chosen, module]
    run = subprocess.run(
        command,
        cwd=_ROOT,
        env=environment() | {"CUDA_EMULATOR_DEVICES": "2", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
    )
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout and "skipped" not in run.stdout


@needs_emulator
def test_the_device_is_listed() -> None:
    command = [sys.executable, "-m", "hloforge.tools.start", "devices"]
    run = subprocess.run(command, cwd=_ROOT, env=environment(), capture_output=True, text=True, timeout=_TIMEOUT)
    assert "Emulated GPU" in run.stdout and "--device=cuda://GPU-" in run.stdout
