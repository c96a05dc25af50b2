"""Plugins of IREE's compiler that nothing asks for are left out."""

from __future__ import annotations

import subprocess

import pytest

from hloforge.runtime.compile.iree import compiler_binary
from hloforge.runtime.compile.plugins import without_plugins
from hloforge.runtime.compile.targets import Target


@pytest.mark.parametrize(
    ("target", "used"),
    [
        ("cpu", set()),
        ("cuda:sm_80", {"hal_target_cuda"}),
        ("rocm:gfx942", {"hal_target_rocm"}),
        ("vulkan", {"hal_target_vulkan_spirv"}),
        ("metal", {"hal_target_metal_spirv"}),
    ],
)
def test_a_target_keeps_its_own_plugin(target: str, used: set[str]) -> None:
    flags = Target.parse(target).flags()
    printed = _activated(*flags, *without_plugins(flags))
    assert printed == {"input_stablehlo", "hal_target_local", "hal_target_llvm_cpu"} | used


@pytest.mark.parametrize(
    ("flag", "plugin"),
    [
        ("--iree-plugin=input_torch", "input_torch"),
        ("--iree-consteval-jit-target-backend=vmvx", "hal_target_vmvx"),
        ("--iree-hal-target-backends=rocm", "hal_target_rocm"),
    ],
)
def test_a_users_flag_keeps_a_plugin(flag: str, plugin: str) -> None:
    assert f"--iree-plugin=-{plugin}" not in without_plugins([flag])


def _activated(*flags: str) -> set[str]:
    """The plugins that IREE's compiler says it starts."""
    command = [compiler_binary(), "-", "-o", "-", *flags, "--compile-to=input", "--iree-print-plugin-info"]
    done = subprocess.run(command, input="module {}", capture_output=True, text=True, check=True)
    return {line.split("'")[1] for line in done.stderr.splitlines() if "Initializing" in line}
