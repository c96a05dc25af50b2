"""Sessions on Vulkan, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support_vulkan import environment, needs_vulkan

_ROOT = Path(__file__).resolve().parents[2]
# Seconds; a driver that hangs ends here.
_TIMEOUT = 600


@needs_vulkan
def test_sessions_on_vulkan() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "tests/runtime/vulkan_sessions.py",
    ]
    run = subprocess.run(command, cwd=_ROOT, env=environment(), capture_output=True, text=True, timeout=_TIMEOUT)
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout and "skipped" not in run.stdout
