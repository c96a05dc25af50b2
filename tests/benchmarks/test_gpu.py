"""``make gpu-check`` without a GPU: why it cannot run, and its parts on the processor, beside a stand-in's peaks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hloforge
from benchmarks.gpu import __main__ as check, conformance, kernels, machine, measure, pack, peaks
from benchmarks.gpu.checking import ROOT
from benchmarks.gpu.kernels import Kernel
from benchmarks.gpu.progress import Progress
from benchmarks.gpu.render import document
from benchmarks.gpu.rows import Row
from benchmarks.gpu.sampled import Sampled, step_of
from benchmarks.gpu.watched import Watched
from hloforge.runtime.devices import drivers
from hloforge.runtime.devices.drivers import Device, Driver


def test_without_a_gpu_it_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(drivers, "driver", lambda name: Driver(name, (), "no libcuda.so.1", "install NVIDIA's driver"))
    written = [f"--document={tmp_path / 'gpu.md'}", f"--results={tmp_path / 'gpu.json'}"]
    assert check.main(written) == 1
    said = capsys.readouterr().err
    assert said == "gpu-check cannot run here: no device to check: no libcuda.so.1\ninstall NVIDIA's driver\n"
    assert not list(tmp_path.iterdir())


def test_the_gpu_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Device("cuda://GPU-1", "NVIDIA H200", {"gpu-compute-capability": "9.0"})
    monkeypatch.setattr(drivers, "driver", lambda name: Driver(name, (gpu,)))
    found = machine.machine("cuda")
    assert (found.name, str(found.target)) == ("NVIDIA H200", "cuda:sm_90")
    assert found.peaks is not None
    assert found.peaks.flops["bf16"] == 989e12
    assert peaks.known_peaks("Voodoo 2") is None


def test_the_least_time_is_that_of_the_scarcer_resource() -> None:
    least = peaks.Peaks({"f32": 1e12}, 1e9, "test")
    assert least.seconds("f32", flops=2e12, moved=1e9) == 2.0
    assert least.seconds("f32", flops=1e12, moved=3e9) == 3.0


@pytest.mark.parametrize("kernel", kernels.kernels(32), ids=lambda kernel: kernel.name)
def test_what_a_kernel_must_do(kernel: Kernel) -> None:
    """Multiplications and bytes, counted by XLA's cost analysis, which counts some exponentials otherwise."""
    jax = pytest.importorskip("jax")
    compiled = jax.jit(kernels.jax_function(kernel.kind)).lower(*kernel.arguments()).compile()
    found = compiled.cost_analysis()
    if kernel.kind in ("matmul", "attention"):
        assert found["flops"] == pytest.approx(kernel.flops, rel=0.35)
    moved = sum(array.nbytes for array in kernel.arguments())
    assert kernel.bytes_moved >= moved


def test_a_kernel_on_the_processor() -> None:
    here = machine.machine("local-sync")
    softmax = next(kernel for kernel in kernels.kernels(64) if kernel.kind == "softmax" and kernel.element == "f32")
    row = measure.kernel_row(softmax, here, 0.05)
    assert "error" not in row, row
    assert row["bound"] > 0
    assert {"hloforge", "xla"} <= row["seconds"].keys()


def _check(tmp_path: Path, *words: str) -> int:
    files = (f"--document={tmp_path / 'gpu.md'}", f"--results={tmp_path / 'gpu.json'}")
    return check.main(["--device=local-sync", "--part=programs", "--only=sum rows", "--seconds=0.05", *words, *files])


def test_a_check_and_its_files(tmp_path: Path) -> None:
    assert _check(tmp_path) == 0
    text = (tmp_path / "gpu.md").read_text()
    assert "# On this machine's processor" in text
    assert "| sum rows 1024² |" in text
    assert "| yes |" in text
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["programs"][0]["agrees"] is True


def test_a_check_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _check(tmp_path, "--budget=0") == 0
    assert "- programs: sum rows 1024²" in (tmp_path / "gpu.md").read_text()
    head: Row = {"date": "", "machine": _MACHINE, "versions": {}}
    files = (tmp_path / "gpu.json", tmp_path / "gpu.md")
    first = Progress(head, *files)
    first.take("programs", {"name": "a", "error": "crashed"})
    first.take("programs", {"name": "b", "seconds": {"hloforge": 1.0}, "ratios": {}, "failures": {}})
    again = Progress(head, *files, resume=True)
    assert (again.has("programs", "a"), again.has("programs", "b")) == (False, True)
    other = Progress(head | {"machine": _MACHINE | {"name": "another"}}, *files, resume=True)
    assert not other.has("programs", "b")


_MACHINE = {"name": "GPU", "target": "cuda:sm_90", "peaks": None}
# Answers, or does not, as its question says.
_CHILD = """
import os, sys, time
from benchmarks.gpu.watched import serve
def answer(question):
    if question["name"] == "hangs":
        time.sleep(60)
    if question["name"] == "crashes":
        print("CUDA_ERROR_ILLEGAL_ADDRESS", file=sys.stderr, flush=True)
        os._exit(3)
    return {"name": question["name"], "process": 1 // (question["name"] != "raises")}
serve(answer)
"""


def test_a_row_that_hangs_or_crashes_is_an_error_and_the_next_one_is_asked() -> None:
    child = Watched(["-c", _CHILD])
    answers = {
        name: child.ask({"name": name}, 10 if name != "hangs" else 1.0)
        for name in ("hangs", "crashes", "raises", "runs")
    }
    child.close()
    assert answers["hangs"] == {"error": "no answer within 1 s"}
    assert answers["crashes"] == {"error": "its process ended (status 3): CUDA_ERROR_ILLEGAL_ADDRESS"}
    assert answers["raises"]["error"].startswith("ZeroDivisionError")
    assert "error" not in answers["runs"]


def test_what_is_wrong_is_told() -> None:
    head = {"date": "", "machine": _MACHINE, "versions": {}}
    text = document(head | {"conformance": [_failure("numerics"), _failure(""), {"name": "b", "error": "hangs"}]})
    assert "1 of 3 rows" in text
    assert "- `b` (run): hangs" in text
    progress = Progress(head, Path("unwritten"), Path("unwritten"))
    for stage, wrong in (("", False), ("compile", False), ("numerics", True)):
        progress.found["conformance"] = [_failure(stage)]
        assert progress.is_wrong is wrong
    progress.found = {"kernels": [{"name": "a", "agrees": False}]}
    assert progress.is_wrong


def _failure(stage: str) -> dict[str, str]:
    return {"name": "add/f32", "stage": stage, "reason": "because"}


@pytest.mark.parametrize("kernel", kernels.kernels(64), ids=lambda kernel: kernel.name)
def test_a_kernel_is_judged(kernel: Kernel) -> None:
    jax = pytest.importorskip("jax")
    arguments = kernel.arguments()
    result = np.array(jax.jit(kernels.jax_function(kernel.kind))(*arguments))
    assert kernel.agrees(kernel.error(arguments, result))
    assert not kernel.agrees(kernel.error(arguments, result + np.asarray(np.abs(result).max() / 4, result.dtype)))
    result[..., -1] = np.nan
    assert not kernel.agrees(kernel.error(arguments, result))


def test_some_elements_judge_a_result() -> None:
    right = np.linspace(-1, 1, 200_000, dtype=np.float32)
    step = step_of(right.size)
    some = Sampled(right.dtype, step, [right[::step]], None, 1e-4)
    assert some.difference(right.tobytes()) == ""
    assert some.difference((right * np.float32(1.01)).tobytes())
    assert some.difference(right[:-9].tobytes()) == f"{right.size - 9} elements"
    # No further from the truth than the reference is.
    truth = right[::step].astype(np.float64) * 1.01
    assert (
        Sampled(right.dtype, step, [right[::step]], truth, 1e-4).difference((right * np.float32(1.015)).tobytes()) == ""
    )
    exact = Sampled(np.dtype(np.int32), 1, [np.arange(9, dtype=np.int32)], None, 0.0)
    assert exact.difference(np.arange(9, dtype=np.int32).tobytes()) == ""
    assert exact.difference(np.arange(1, 10, dtype=np.int32).tobytes()) == "9 of 9 differ, first 1 for 0"


@pytest.mark.slow
def test_a_pack_is_run_without_hloforge(tmp_path: Path) -> None:
    path = tmp_path / "pack.zip"
    words = ["--target=cpu:generic", "--scale=64", "--share=120", "--python=", f"--pack={path}"]
    assert pack.main([*words, "--only=sum", "--part=kernels"]) == 0
    files = [f"--document={tmp_path / 'gpu.md'}", f"--results={tmp_path / 'gpu.json'}"]
    # A module that is None cannot be imported; the child, another process, must do without them as well.
    code = (
        "import sys; sys.modules |= dict.fromkeys(('hloforge', 'jaxlib', 'jax', 'iree.compiler'));"
        "from benchmarks.gpu.packed import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, str(path), "--device=local-sync", "--seconds=0.05", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "gpu.json").read_text())["kernels"]
    assert [row["agrees"] for row in rows] == [True, True]


def test_the_sample_of_rows_is_the_same_everywhere() -> None:
    few = conformance.rows(100)
    assert few
    assert few == conformance.rows(100)
    assert set(few) <= set(conformance.rows(1))


def test_the_sample_of_rows_is_run() -> None:
    here, names = machine.machine("local-sync"), conformance.rows(250)
    assert [conformance.row(name, here) for name in names] == [
        {"name": name, "stage": "", "reason": ""} for name in names
    ]


def test_the_device_is_missing_on_the_command_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "driver", lambda name: Driver(name, (), "no libamdhip64.so", "install it"))
    with pytest.raises(hloforge.LoadError, match="no libamdhip64"):
        machine.machine("hip")
