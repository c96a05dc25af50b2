"""``make gpu-check`` without a GPU: why it cannot run, and its parts on the processor, beside a stand-in's peaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hloforge
from benchmarks.gpu import __main__ as check, conformance, kernels, machine, measure
from benchmarks.gpu.kernels import Kernel
from benchmarks.gpu.render import document
from hloforge.runtime import drivers
from hloforge.runtime.drivers import Device, Driver


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
    gpu = Device("cuda://GPU-1", "NVIDIA H200", {"gpu-arch-name": "sm_90"})
    monkeypatch.setattr(drivers, "driver", lambda name: Driver(name, (gpu,)))
    found = machine.machine("cuda")
    assert (found.name, str(found.target)) == ("NVIDIA H200", "cuda:sm_90")
    assert found.peaks is not None
    assert found.peaks.flops["bf16"] == 989e12
    assert machine.known_peaks("Voodoo 2") is None


def test_the_least_time_is_that_of_the_scarcer_resource() -> None:
    peaks = machine.Peaks({"f32": 1e12}, 1e9, "test")
    assert peaks.seconds("f32", flops=2e12, moved=1e9) == 2.0
    assert peaks.seconds("f32", flops=1e12, moved=3e9) == 3.0


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


def test_the_document(tmp_path: Path) -> None:
    written = [f"--document={tmp_path / 'gpu.md'}", f"--results={tmp_path / 'gpu.json'}"]
    words = ["--device=local-sync", "--part=programs", "--only=sum rows", "--seconds=0.05"]
    assert check.main([*words, *written]) == 0
    text = (tmp_path / "gpu.md").read_text()
    assert "# On this machine's processor" in text
    assert "| sum rows 1024² |" in text
    assert "| yes |" in text
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["programs"][0]["agrees"] is True
    failing = found | {"conformance": {"rows": 2, "right": 1, "failures": [_failure("numerics")]}}
    assert "1 of 2 rows" in document(failing)
    assert check._is_wrong(failing)
    assert not check._is_wrong(found | {"conformance": {"failures": [_failure("compile")]}})


def _failure(stage: str) -> dict[str, str]:
    return {"name": "add/f32", "stage": stage, "reason": "because"}


def test_the_sample_of_rows_is_the_same_everywhere() -> None:
    few = conformance.rows(100)
    assert few
    assert few == conformance.rows(100)
    assert set(few) <= set(conformance.rows(1))


def test_the_sample_of_rows_is_run() -> None:
    found = conformance.conformance(machine.machine("local-sync"), 250)
    assert found == {"rows": len(conformance.rows(250)), "right": len(conformance.rows(250)), "failures": []}


def test_the_device_is_missing_on_the_command_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "driver", lambda name: Driver(name, (), "no libamdhip64.so", "install it"))
    with pytest.raises(hloforge.LoadError, match="no libamdhip64"):
        machine.machine("hip")
