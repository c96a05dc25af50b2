"""Every benchmark program compiles for CUDA, without a GPU: what the vmfb holds is PTX of the asked architecture.

NVIDIA's own assembler judges it, where PyPI's ``nvidia-cuda-nvcc-cu12`` or a toolkit is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hloforge
from benchmarks.suite import CASES
from tests import ptx

ARCHITECTURES = ("sm_80", "sm_90")
# Of each kind of trouble that CUDA had with a program, one; they compile within seconds.
SAMPLE = ("matmul 256³ bf16", "softmax 1024²", "batch norm training 8×56² 64", "scatter-add 1,024 to 10,000 rows of 64")
# Seconds of one run of IREE's compiler, of which there may be several.
TIMEOUT = 600.0


def check(name: str, architecture: str, folder: Path) -> None:
    case = CASES[name]
    if case.needs():
        pytest.skip(case.needs())
    vmfb = hloforge.compile(case.build()[0], f"cuda:{architecture}", timeout=TIMEOUT, elided="random").vmfb
    assert ptx.architectures(vmfb) == {architecture}
    tool = ptx.assembler()
    for text in ptx.texts(vmfb) if tool else ():
        assert ptx.complaint(tool, text, architecture, folder) == ""


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_compiles_to_ptx(name: str, tmp_path: Path) -> None:
    check(name, "sm_90", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_program_compiles_to_ptx(name: str, architecture: str, tmp_path: Path) -> None:
    check(name, architecture, tmp_path)


def test_the_assembler_finds_faults(tmp_path: Path) -> None:
    """A check that accepted anything would be none."""
    tool = ptx.assembler()
    if tool is None:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc-cu12")
    vmfb = hloforge.compile(CASES["softmax 1024²"].build()[0], "cuda:sm_90").vmfb
    (text, *_) = ptx.texts(vmfb)
    assert ptx.complaint(tool, text, "sm_90", tmp_path) == ""
    assert "error" in ptx.complaint(tool, text.replace(b"ret;", b"retreat;"), "sm_90", tmp_path)
    assert ptx.complaint(tool, text, "sm_75", tmp_path) != ""
