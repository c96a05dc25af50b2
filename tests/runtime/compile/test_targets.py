"""Targets and options: what is understood, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import OptionError
from hloforge.pipelines.framework.machine import AVX2, AVX512, NEON, WASM, Machine
from hloforge.runtime.compile import cpu_targets
from hloforge.runtime.compile.cpu_targets import CPU_NAMES
from hloforge.runtime.compile.direct.host import unavailable
from hloforge.runtime.compile.gpu_targets import CUDA_ARCHITECTURES, ROCM_ARCHITECTURES, VULKAN_NAMES, vulkan_name
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.options import CompileOptions


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cpu", Target("cpu", "host")),
        ("cpu:host", Target("cpu", "host")),
        ("cpu:generic", Target("cpu", "generic")),
        ("cpu:znver3,+avx2,-fma", Target("cpu", "znver3", "+avx2,-fma")),
        ("cpu:aarch64", Target("cpu", "aarch64")),
        ("cuda:sm_90", Target("cuda", "sm_90")),
        ("cuda:H100", Target("cuda", "sm_90")),
        ("cuda:rtx4090", Target("cuda", "sm_89")),
        ("rocm:gfx1100", Target("rocm", "gfx1100")),
        ("rocm:mi300x", Target("rocm", "gfx942")),
        ("vulkan:rdna3", Target("vulkan", "rdna3")),
        ("metal", Target("metal", "")),
    ],
)
def test_parse(text: str, target: Target) -> None:
    assert Target.parse(text) == target
    assert Target.parse(str(target)) == target
    assert Target.parse(target) is target


@pytest.mark.parametrize(
    ("target", "machine"),
    [
        ("cpu:znver5", AVX512),
        ("cpu:x86-64-v4", AVX512),
        ("cpu:x86-64-v3", AVX2),
        ("cpu:x86-64", AVX2),
        ("cpu:x86-64,+avx512f,+avx512bw,+avx512dq,+avx512vl", AVX512),
        ("cpu:x86-64,+avx512f", AVX2),  # no vectors of 64 bytes of small integers
        ("cpu:sapphirerapids,-avx512vl", AVX2),
        ("cpu:neoverse-v2", NEON),
        ("cpu:wasm32", WASM),
        ("vulkan:rdna3", AVX2),
    ],
)
def test_code_is_written_for_the_processor(target: str, machine: Machine) -> None:
    chosen = Target.parse(target)
    assert chosen.machine == machine


def test_flags() -> None:
    flags = Target.parse("cpu:znver3,+avx2").flags()
    assert "--iree-llvmcpu-target-cpu=znver3" in flags
    assert "--iree-llvmcpu-target-cpu-features=+avx2" in flags
    assert "--iree-input-demote-f64-to-f32=false" in flags


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("tpu", "unknown target 'tpu'", "cpu, vulkan, cuda, rocm, metal"),
        ("", "unknown target ''", "cpu"),
        ("sm_90", "unknown target 'sm_90'", "write cuda:sm_90"),
        ("aarch64", "unknown target 'aarch64'", "write cpu:aarch64"),
        ("ppc64le", "unknown target 'ppc64le'", "write cpu:ppc64le"),
        ("cpu:ppc64le", "hloforge does not compile for 'ppc64le'", "riscv64"),
        ("cpu:wasm64", "WebAssembly of 32 bits alone", "wasm32"),
        ("cuda:sm_91", "unknown GPU 'sm_91'", "did you mean sm_90"),
        ("rocm:gfx1", "unknown GPU 'gfx1'", "gfx1100"),
        ("vulkan:voodoo", "unknown GPU 'voodoo'", "llvmpipe"),
        ("metal:m1", "Metal has no variants", "write metal"),
        ("cpu:zenver3", "unknown processor 'zenver3'", "znver3"),
        ("cpu:generic,avx2", "malformed features 'avx2'", "+name"),
        ("cpu:generic,+a b", "malformed features", "+name"),
        ("cpu:host,+avx2", "the host's processor", "cpu:generic,+avx2"),
    ],
)
def test_what_is_unknown(text: str, said: str, hint: str) -> None:
    with pytest.raises(OptionError) as caught:
        Target.parse(text)
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_several_targets() -> None:
    """A comma parts targets; features begin with a sign."""
    found = parse_targets("cuda:sm_90,vulkan:rdna3,cpu:znver3,+avx2,-fma")
    assert found == (Target("cuda", "sm_90"), Target("vulkan", "rdna3"), Target("cpu", "znver3", "+avx2,-fma"))
    assert parse_targets("cpu") == (Target(),)
    with pytest.raises(OptionError, match="named twice"):
        parse_targets("cuda:h100,cuda:sm_90")
    with pytest.raises(OptionError, match="malformed features 'avx2'"):
        parse_targets("cpu:generic,avx2")


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe"),
        ("NVIDIA GeForce RTX 4090", "ada"),
        ("NVIDIA H200", "sm_80"),
        ("NVIDIA GeForce GTX 1660 Ti", "turing"),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "rdna3"),
        ("AMD Radeon PRO W6800", "rdna2"),
        ("Adreno (TM) 740", "adreno"),
        ("Intel(R) UHD Graphics 770", "baseline"),
    ],
)
def test_vulkan_devices(device: str, name: str) -> None:
    assert vulkan_name(device) == name


SOURCE = """func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}"""
# What a vmfb for a target holds, which nothing else writes into it.
CODE = {
    "cuda:sm_80": b".target sm_80",
    "cuda:sm_90": b".target sm_90",
    "cpu:aarch64": b"embedded-elf-arm_64",
    "cpu:riscv64": b"embedded-elf-riscv_64",
    "cpu:wasm32": b"system-wasm-wasm_32",
    "rocm:gfx1100": b"rocm-hsaco-fb",
    "metal": b"kernel void",
}
ALL = [
    *(f"cpu:{name}" for name in CPU_NAMES),
    *(f"cuda:{name}" for name in CUDA_ARCHITECTURES),
    *(f"rocm:{name}" for name in ROCM_ARCHITECTURES),
    *(f"vulkan:{name}" for name in VULKAN_NAMES),
    "metal",
]


@pytest.mark.wide(2)
@pytest.mark.parametrize("target", CODE)
def test_code_is_the_target_s(target: str) -> None:
    executable = hloforge.compile(SOURCE, target, cache=False)
    assert CODE[target] in executable.vmfb
    assert executable.manifest.target == target


@pytest.mark.slow
@pytest.mark.parametrize("target", ALL)
def test_every_name_is_one_that_iree_compiles_for(target: str) -> None:
    assert hloforge.compile(SOURCE, target, cache=False).manifest.target == target


@pytest.mark.parametrize(
    ("target", "needs", "not_"),
    [
        ("cpu:generic", set(), {"avx2"}),
        ("cpu:x86-64-v2", {"sse4_2"}, {"avx2"}),
        ("cpu:znver3", {"avx2", "fma", "f16c"}, {"avx512f"}),
        ("cpu:znver3,-fma,+avx512f", {"avx2", "avx512f"}, {"fma"}),
        ("cpu:icelake-server", {"avx512f", "avx512_vnni"}, {"avx512_bf16", "amx_int8"}),
        ("cpu:aarch64", set(), {"avx2"}),
        ("cuda:sm_80", set(), {"avx2"}),
    ],
)
def test_what_code_asks_of_a_processor(target: str, needs: set[str], not_: set[str]) -> None:
    found = set(Target.parse(target).instructions)
    assert needs <= found and not not_ & found


def test_code_with_instructions_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calling it would end the process."""
    executable = hloforge.compile(SOURCE, "cpu:x86-64-v4", cache=False)
    both = hloforge.compile(SOURCE, "cpu:x86-64-v4,cpu:generic", cache=False)
    monkeypatch.setattr(cpu_targets, "_host_flags", lambda: frozenset({"sse4_2", "avx2", "fma"}))
    with pytest.raises(hloforge.LoadError, match=r"compiled for cpu:x86-64-v4.*lacks .*avx512f") as caught:
        executable.load()
    assert "--target=cpu:generic" in (caught.value.hint or "")
    assert both.load().manifest.target == "cpu:generic"


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:znver3,+avx512f"])
def test_code_for_processors_of_this_architecture_is_ours_and_runs(target: str) -> None:
    if cpu_targets.lacking(Target.parse(target).instructions):
        pytest.skip(f"this processor does not run {target}")
    executable = hloforge.compile(SOURCE, target, cache=False)
    assert executable.manifest.is_generated or unavailable()
    a, b = (np.random.default_rng(0).normal(size=shape).astype(np.float32) for shape in ((16, 8), (8, 16)))
    np.testing.assert_allclose(executable.load()(a, b), a @ b, rtol=1e-5, atol=1e-6)


def test_what_a_device_lacks_is_refused_with_its_limit() -> None:
    text = "func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> { return %a : tensor<4xf64> }"
    doubled = text.replace("return %a", "%b = stablehlo.add %a, %a : tensor<4xf64>\n return %b")
    with pytest.raises(hloforge.UnsupportedError, match=r"f64 is not supported: Metal.* no 64-bit floats") as caught:
        hloforge.compile(doubled, "metal", cache=False)
    assert caught.value.location is not None


@pytest.mark.parametrize("target", ["cpu:riscv64", "cpu:aarch64"])
def test_code_of_another_processor_is_refused_by_name(target: str) -> None:
    executable = hloforge.compile(SOURCE, target, cache=False)
    with pytest.raises(hloforge.LoadError) as caught:
        executable.load()
    assert f"does not run code for {target}" in caught.value.message


def test_code_of_another_device_is_refused_by_name() -> None:
    with pytest.raises(hloforge.LoadError, match="device local-sync does not run code for cuda:sm_90"):
        hloforge.compile(SOURCE, "cuda:sm_90", cache=False).load(device="local-sync")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"flags": ("-O3",)}, "'-O3' is no flag of IREE's compiler"),
        ({"flags": ("--iree-x; rm",), "isolation": "thread"}, "unknown isolation 'thread'"),
        ({"timeout": 0}, "timeout must be positive"),
        ({"memory_limit": -1}, "memory_limit must be positive"),
        ({"timeout": 1, "isolation": "none"}, "needs isolation 'process'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        CompileOptions(**options)


def test_targets_in_a_list_are_those_of_the_command_line() -> None:
    assert parse_targets(["cpu:generic", "cpu:aarch64"]) == parse_targets("cpu:generic,cpu:aarch64")
    assert parse_targets([Target.parse("cpu"), "cpu:generic"]) == parse_targets("cpu,cpu:generic")
    for given, told in (([], "no target is named"), (["cpu", "cpu:host"], "named twice"), (["nope"], "unknown target")):
        with pytest.raises(hloforge.OptionError, match=told):
            parse_targets(given)
