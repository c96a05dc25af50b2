"""Several targets in one file: which one runs, and what any other tool sees in it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.runtime.artifact import bundle
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.devices import drivers
from hloforge.runtime.devices.drivers import Device, Driver
from hloforge.runtime.session.modules import read_manifest

SOURCE = """func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}"""
A = np.arange(128, dtype=np.float32).reshape(16, 8)
B = A.T.copy()


def machine(monkeypatch: pytest.MonkeyPatch, **devices: Device) -> None:
    """A machine with these GPUs, by driver."""

    def driver(name: str) -> Driver:
        return Driver(name, (devices[name],)) if name in devices else Driver(name, (), f"no {name}")

    monkeypatch.setattr(drivers, "driver", driver)


def gpu(driver: str, name: str, architecture: str = "") -> Device:
    return Device(f"{driver}://0", name, {"gpu-arch-name": architecture})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "several.vmfb"
    hloforge.compile(SOURCE, "cpu:riscv64,cuda:sm_90,cpu", output=path, cache=False)
    return path


def test_the_first_that_runs_here_is_loaded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    for source in (file, file.read_bytes()):
        session = hloforge.load(source)
        assert session.manifest.target == "cpu:host"
        np.testing.assert_array_equal(session(A, B), A @ B)
    assert read_manifest(file).targets == ("cpu:riscv64", "cuda:sm_90", "cpu:host")


def test_none_runs_on_the_device_asked_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    with pytest.raises(hloforge.LoadError, match="none of the file's targets runs on device 'vulkan'") as caught:
        hloforge.load(file, device="vulkan")
    assert "cuda:sm_90: its driver is cuda" in caught.value.notes
    with pytest.raises(hloforge.LoadError, match="none of the file's targets") as caught:
        hloforge.load(file, device="cuda")
    assert "cuda:sm_90: no cuda" in caught.value.notes


def test_the_file_is_a_zip_and_a_vmfb_of_its_first_target(tmp_path: Path) -> None:
    path = tmp_path / "cpu-first.vmfb"
    alone = hloforge.compile(SOURCE, "cuda:sm_90", cache=False).vmfb
    hloforge.compile(SOURCE, "cpu,cuda:sm_90", output=path, cache=False)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("targets/cuda-sm_90.vmfb") == alone
    tool = Path(sys.executable).with_name("iree-run-module")
    inputs = ["--input=16x8xf32=1", "--input=8x16xf32=2", "--expected_output=16x16xf32=16"]
    command = [tool, f"--module={path}", "--device=local-sync", "--function=main", *inputs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "[SUCCESS]" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("devices", "device", "chosen"),
    [
        ({}, None, "cpu:host"),
        ({"vulkan": gpu("vulkan", "llvmpipe (LLVM 15)")}, None, "vulkan:llvmpipe"),
        ({"vulkan": gpu("vulkan", "AMD Radeon RX 7900 XTX")}, None, "vulkan:rdna3"),
        ({"cuda": gpu("cuda", "NVIDIA H200", "sm_90")}, None, "cuda:sm_90"),
        ({"cuda": gpu("cuda", "NVIDIA B200", "sm_100")}, None, "cuda:sm_90"),
        ({"cuda": gpu("cuda", "NVIDIA A100", "sm_80")}, None, "cpu:host"),
        ({"hip": gpu("hip", "AMD Radeon RX 7900 XTX", "gfx1100")}, None, "rocm:gfx1100"),
        ({"hip": gpu("hip", "AMD Instinct MI300X", "gfx942:sramecc+:xnack-")}, None, "cpu:host"),
        ({"cuda": gpu("cuda", "NVIDIA H200", "sm_90")}, "local-task", "cpu:host"),
        (
            {"cuda": gpu("cuda", "NVIDIA H200", "sm_90"), "vulkan": gpu("vulkan", "NVIDIA H200")},
            "vulkan",
            "vulkan:rdna3",
        ),
    ],
)
def test_the_machine_decides(
    devices: dict[str, Device], device: str | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, **devices)
    targets = parse_targets("cuda:sm_90,rocm:gfx1100,vulkan:llvmpipe,vulkan:rdna3,cpu:wasm32,cpu")
    assert str(targets[bundle.choose(targets, device)]) == chosen


@pytest.mark.parametrize(
    "text", ["cpu:host", "cpu:znver3,+avx2,-fma", "cpu:skylake-avx512", "metal", "vulkan:mali-g715"]
)
def test_entries_name_targets(text: str) -> None:
    entry = bundle._entry_of(text)
    assert bundle.target_of(entry) == Target.parse(text)


def test_what_is_compiled_at_its_calls_has_no_file() -> None:
    text = SOURCE.replace("16x8", "?x8").replace("16x16", "?x16")
    with pytest.raises(hloforge.OptionError, match="compiled at its calls"):
        hloforge.compile(text, "cpu,cuda", dynamic_shapes="specialize", cache=False)


def test_damage_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    data = bytearray(file.read_bytes())
    # Within the last entry, the processor's vmfb.
    with zipfile.ZipFile(file) as archive:
        start = archive.getinfo("targets/cpu-host.vmfb").header_offset
    data[start + 200] ^= 0xFF
    with pytest.raises(hloforge.LoadError, match=r"targets/cpu-host\.vmfb is damaged"):
        hloforge.load(bytes(data))


@pytest.mark.parametrize(
    ("target", "device", "runs"),
    [
        ("vulkan:rdna3", "llvmpipe (LLVM 15)", False),
        ("vulkan:llvmpipe", "AMD Radeon RX 7900 XTX", False),
        ("vulkan:llvmpipe", "llvmpipe (LLVM 15)", True),
        ("vulkan:baseline", "llvmpipe (LLVM 15)", True),
        ("cpu", "", True),
    ],
)
def test_code_for_a_gpu_is_not_loaded_on_lavapipe(
    target: str, device: str, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, vulkan=gpu("vulkan", device))
    if runs:
        bundle.check_device(Target.parse(target), "vulkan")
        return
    with pytest.raises(hloforge.LoadError, match=f"compiled for {target}, but the device is"):
        bundle.check_device(Target.parse(target), "vulkan")
