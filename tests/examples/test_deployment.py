"""docs/deployment.md: its commands print what it says, and the service answers requests in batches."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile.iree import runtime_binary
from tests.project import quickstart

ROOT = Path(__file__).resolve().parents[2]
SERVICE = ROOT / "examples" / "deployment" / "service.py"
_ROWS = """func.func @main(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4xi32>) {
  %0 = stablehlo.add %x, %x : tensor<4x3xf32>
  %1 = stablehlo.iota dim = 0 : tensor<4xi32>
  return %0, %1 : tensor<4x3xf32>, tensor<4xi32>
}
"""


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "iree-run-module").symlink_to(runtime_binary("iree-run-module"))
    for name, words in (("hloforge", "-m hloforge"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (commands / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    page = ROOT / "docs" / "deployment.md"
    assert list(quickstart.differing(page, tmp_path, environment, sys.executable)) == []


@pytest.mark.slow
def test_a_program_in_c(tmp_path: Path) -> None:
    source, cmake = os.environ.get("IREE_SOURCE_DIR"), shutil.which("cmake")
    if not source or not cmake:
        pytest.skip("IREE_SOURCE_DIR names no clone of IREE, or there is no cmake")
    hloforge.compile(_ROWS, output=tmp_path / "rows.vmfb")
    place = ["-S", str(ROOT / "examples" / "deployment" / "c"), "-B", str(tmp_path / "build")]
    subprocess.run([cmake, "-G", "Ninja", *place, f"-DIREE_SOURCE_DIR={source}"], check=True)
    subprocess.run([cmake, "--build", str(tmp_path / "build"), "--target", "call_vmfb"], check=True)
    called = [str(tmp_path / "build" / "call_vmfb"), str(tmp_path / "rows.vmfb")]
    done = subprocess.run([*called, "4x3xf32=2"], capture_output=True, text=True, check=True)
    assert done.stdout == "4x3xf32=[4 4 4][4 4 4][4 4 4][4 4 4]\n4xi32=0 1 2 3\n"
    refused = subprocess.run(called, capture_output=True, text=True)
    assert refused.returncode == 1 and "expected 1 arguments but passed 0" in refused.stderr


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a service of ``_ROWS``."""
    hloforge.compile(_ROWS, output=tmp_path / "rows.vmfb")
    words = [sys.executable, str(SERVICE), str(tmp_path / "rows.vmfb"), "--port=0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = re.search(r" at (\d+)$", process.stdout.readline())
        assert port
        yield f"http://127.0.0.1:{port[1]}/"
        process.terminate()


def asked(address: str, array: np.ndarray) -> np.ndarray:
    body = io.BytesIO()
    np.save(body, array)
    with urllib.request.urlopen(urllib.request.Request(address, body.getvalue()), timeout=60) as answer:
        return np.load(io.BytesIO(answer.read()))


def test_the_service_gives_each_client_its_row(served: str) -> None:
    rows = [np.full(3, number, np.float32) for number in range(20)]
    with ThreadPoolExecutor(10) as pool:
        for row, result in zip(rows, pool.map(lambda row: asked(served, row), rows), strict=True):
            np.testing.assert_array_equal(result, 2 * row)


def test_the_service_refuses_what_does_not_fit(served: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        asked(served, np.zeros(4, np.float32))
    assert refused.value.code == 400
    assert b"a request is float32[3], not float32[4]" in refused.value.read()
    np.testing.assert_array_equal(asked(served, np.ones(3, np.float32)), [2, 2, 2])
