"""Sessions on Vulkan, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support_vulkan import TARGET, environment, needs_vulkan

_ROOT = Path(__file__).resolve().parents[2]
# Seconds; a driver that hangs ends here.
_TIMEOUT = 600

# As many turns as an argument says, of a dispatch each.
_LOOP = """
func.func @main(%n: tensor<i32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8x8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<8x8xf32>
    }
  return %r#1 : tensor<8x8xf32>
}
"""


@needs_vulkan
def test_sessions_on_vulkan(request: pytest.FixtureRequest) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-m",
        request.config.getoption("markexpr"),
        "tests/runtime/vulkan_sessions.py",
    ]
    run = subprocess.run(command, cwd=_ROOT, env=environment(), capture_output=True, text=True, timeout=_TIMEOUT)
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout and "skipped" not in run.stdout


@needs_vulkan
def test_a_call_that_does_not_end_is_an_error_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "loop.mlir").write_text(_LOOP)
    command = [sys.executable, "-m", "hloforge.tools.start", "run", "loop.mlir", f"--target={TARGET}", "--deadline=1"]
    run = subprocess.run(
        [*command, "--input=s32=2000000000", "--input=8x8xf32=0"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
    )
    assert run.returncode == 1
    assert run.stderr.splitlines() == ["error: the call did not end within 1 s"]
