"""Executables are linked with an object of IREE's C library, and not with its bitcode."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile import cache, support_library
from hloforge.runtime.compile.elf_symbols import ElfError, with_global_functions
from hloforge.runtime.compile.support_library import flags_with_library
from hloforge.runtime.compile.targets import Target

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the library is linked on Linux alone")
REMAINDER = """
func.func @main(%a: tensor<37x{0}>, %b: tensor<37x{0}>) -> tensor<37x{0}> {{
  %r = stablehlo.remainder %a, %b : tensor<37x{0}>
  return %r : tensor<37x{0}>
}}
"""
LINKER = "--iree-llvmcpu-system-linker-path="


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of this test alone, and a process that has made no library."""
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    forget(monkeypatch)
    yield tmp_path / "cache"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_library, "_libraries", {})
    monkeypatch.setattr(support_library, "_seen", set())


def flags_of(target: str, *more: str) -> tuple[str, ...]:
    return (*Target.parse(target).flags(), *more)


@pytest.mark.usefixtures("iree_codegen")
@ON_LINUX
@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_calls_of_the_library_are_resolved(
    home: Path, element: str, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked: list[str] = []
    original = support_library.flags_with_library

    def spied(flags: tuple[str, ...], folder: Path) -> tuple[str, ...]:
        found = original(flags, folder)
        linked.extend(flag for flag in found if flag.startswith(LINKER))
        return found

    monkeypatch.setattr("hloforge.runtime.compile.compiler_process.flags_with_library", spied)
    generator = np.random.default_rng(5)
    a, b = (generator.uniform(-50, 50, 37).astype(dtype) for _ in range(2))
    # Without the decomposition LLVM calls fmod of C.
    executable = hloforge.compile(REMAINDER.format(element), cache=False)
    np.testing.assert_array_equal(executable.load()(a, b), np.fmod(a, b))
    assert len(linked) == 1


@ON_LINUX
@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v2", "cpu:aarch64", "cpu:riscv64"])
def test_executables_of_every_architecture_are_files_for_irees_loader(home: Path, target: str, tmp_path: Path) -> None:
    vmfb = hloforge.compile(REMAINDER.format("f32"), target, cache=False).vmfb
    assert b"embedded-elf-" in vmfb and b"system-elf-" not in vmfb
    # What the runtime says where a processor lacks something names the device briefly.
    assert b"HAL device `__device_0` not found" in vmfb
    start = vmfb.index(b"\x7fELF")
    reader = shutil.which("readelf")
    if reader is None:
        pytest.skip("readelf (binutils) is missing")
    path = tmp_path / "executable.so"
    path.write_bytes(vmfb[start:])
    printed = subprocess.run([reader, "--dyn-syms", "--wide", path], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in printed.splitlines() if line.split()[3:4] in (["FUNC"], ["NOTYPE"])]
    assert "iree_hal_executable_library_query" in names
    assert not [line for line in printed.splitlines() if " UND " in line and line.split()[-1] != "UND"]


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("cuda:sm_80", ()),
        ("vulkan", ()),
        ("cpu:wasm32", ()),
        ("cpu:i686", ()),
        ("cpu:armv7a", ()),
        ("cpu", ("--iree-llvmcpu-link-embedded=false",)),
        ("cpu", ("-iree-llvmcpu-loop-unrolling=false",)),
        ("cpu", ("--iree-hal-executable-debug-level=3",)),
    ],
)
def test_other_devices_and_flags_of_users_keep_irees_way(
    home: Path, target: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    flags = flags_of(target, *more)
    assert flags_with_library(flags, tmp_path) == flags


def test_off_linux_irees_way_is_kept(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert flags_with_library(flags_of("cpu"), tmp_path) == flags_of("cpu")


@ON_LINUX
def test_flags_of_no_device_stay(home: Path, tmp_path: Path) -> None:
    peel = "--iree-llvmcpu-vector-pproc-strategy=peel"
    found = flags_with_library(flags_of("cpu", peel), tmp_path)
    assert peel in found and any(flag.startswith(LINKER) for flag in found)


@ON_LINUX
def test_a_library_is_made_once_and_again_after_damage(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = support_library._made
    monkeypatch.setattr(support_library, "_made", lambda asked: made.append(asked) or original(asked))
    flags_with_library(flags_of("cpu"), tmp_path)
    (kept,) = home.glob(f"*{cache.LIBRARY_SUFFIX}")
    forget(monkeypatch)
    flags_with_library(flags_of("cpu"), tmp_path)
    assert len(made) == 1
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert cache.recall(kept) is None
    forget(monkeypatch)
    flags_with_library(flags_of("cpu"), tmp_path)
    assert len(made) == 2 and cache.recall(kept) is not None
    cache.clear(home)
    assert not kept.exists()


@ON_LINUX
@pytest.mark.parametrize("kind", ["none", "open to all"])
def test_without_a_cache_the_second_program_makes_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    monkeypatch.setenv(cache.FOLDER_VARIABLE, "" if kind == "none" else str(home))
    forget(monkeypatch)
    assert flags_with_library(flags_of("cpu"), tmp_path) == flags_of("cpu")
    assert any(flag.startswith(LINKER) for flag in flags_with_library(flags_of("cpu"), tmp_path))
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF\x01\x01" + bytes(80), b"\x7fELF\x02\x01" + bytes(20), b"\x7fELF\x02\x01" + bytes(80)]
)
def test_what_is_no_object_of_64_bits_is_refused(data: bytes) -> None:
    with pytest.raises(ElfError):
        with_global_functions(data)


@ON_LINUX
def test_what_cannot_be_made_is_left_out(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hloforge.runtime.compile.iree.compiler_binary", lambda: "/bin/false")
    assert flags_with_library(flags_of("cpu"), tmp_path) == flags_of("cpu")
