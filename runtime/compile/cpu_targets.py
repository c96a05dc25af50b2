"""Processors by name: what LLVM calls them, and the architectures that IREE's wheel compiles for."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hloforge.pipelines.framework.machine import AVX2, AVX512, NEON, WASM, Machine

# `host` (this machine's processor) and `generic` (any of its architecture).
OWN: tuple[str, ...] = ("host", "generic")


@dataclass(frozen=True)
class Architecture:
    """What IREE's flags say of an architecture.

    Attributes:
        triple: LLVM's.
        features: that code for it needs at least.
        abi: LLVM's calling convention, where there are several.
    """

    triple: str
    features: str = ""
    abi: str = ""


ARCHITECTURES: Mapping[str, Architecture] = {
    "x86-64": Architecture("x86_64-linux-gnu"),
    "aarch64": Architecture("aarch64-linux-gnu"),
    "armv7a": Architecture("armv7a-linux-gnueabihf", "+neon"),
    "i686": Architecture("i686-linux-gnu", "+sse2"),
    "riscv64": Architecture("riscv64-linux-gnu", "+m,+a,+f,+d,+c,+v", "lp64d"),
    "riscv32": Architecture("riscv32-linux-gnu", "+m,+a,+f,+d", "ilp32d"),
    "wasm32": Architecture("wasm32-unknown-emscripten", "+simd128"),
}

# Processors, by architecture.
PROCESSORS: Mapping[str, tuple[str, ...]] = {
    "x86-64": (
        "x86-64-v2", "x86-64-v3", "x86-64-v4", "haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake",
        "icelake-server", "sapphirerapids", "graniterapids", "alderlake", "znver1", "znver2", "znver3", "znver4",
        "znver5",
    ),
    "aarch64": (
        "cortex-a53", "cortex-a55", "cortex-a72", "cortex-a76", "cortex-a78", "cortex-x1", "cortex-x2", "neoverse-n1",
        "neoverse-n2", "neoverse-v1", "neoverse-v2", "ampere1", "apple-m1", "apple-m2", "apple-m3", "apple-m4",
    ),
    "riscv64": ("sifive-u74", "sifive-x280", "spacemit-x60"),
}  # fmt: skip

# Those of x86-64 that have vectors of 64 bytes, for elements of any width; and LLVM's and Linux's names for these.
_WITH_AVX512 = frozenset((
    "x86-64-v4", "skylake-avx512", "cascadelake", "icelake-server", "sapphirerapids", "graniterapids", "znver4",
    "znver5",
))  # fmt: skip
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
# Instructions for products, by Linux's names, and LLVM's of them.
_PRODUCTS = {
    "avx2": "avx2",
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
    "avx512vbmi": "avx512vbmi",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
}
# What code for a processor of x86-64 needs, by Linux's names.
_V2 = ("popcnt", "sse4_1", "sse4_2", "ssse3")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_WITH_VNNI = frozenset(("cascadelake", "icelake-server", "sapphirerapids", "graniterapids", "znver4", "znver5"))
_WITH_AMX = frozenset(("sapphirerapids", "graniterapids"))
_WITH_PRODUCTS = {
    "avx2": frozenset(PROCESSORS["x86-64"]) - {"x86-64-v2"},
    "avx512vnni": _WITH_VNNI,
    "avx512vbmi": _WITH_VNNI - {"cascadelake"},
    "avx512bf16": frozenset(("znver4", "znver5")) | _WITH_AMX,
    "amx-int8": _WITH_AMX,
    "amx-bf16": _WITH_AMX,
}
_CPUINFO = Path("/proc/cpuinfo")
# What of a processor's description there decides its code.
_DECISIVE = ("model name", "flags", "Features", "CPU part")

CPU_NAMES: tuple[str, ...] = (*OWN, *ARCHITECTURES, *(name for names in PROCESSORS.values() for name in names))

# Architectures that users may ask for, and why there is no code for them.
REFUSED: Mapping[str, str] = {
    "ppc64le": "the LLVM in IREE's compiler has no code generator for PowerPC",
    "s390x": "the LLVM in IREE's compiler has no code generator for System z",
    "mips64": "the LLVM in IREE's compiler has no code generator for MIPS",
    "loongarch64": "the LLVM in IREE's compiler has no code generator for LoongArch",
    "wasm64": "IREE links WebAssembly of 32 bits alone; cpu:wasm32 is there",
}


def architecture_of(name: str) -> str:
    """The architecture of a processor or of itself; empty for this machine's."""
    if name in ARCHITECTURES:
        return name
    return next((architecture for architecture, names in PROCESSORS.items() if name in names), "")


def cpu_flags(name: str, features: str) -> tuple[str, ...]:
    """IREE's flags for a processor with LLVM's features beside its own."""
    architecture = architecture_of(name)
    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    needed = ""
    if architecture:
        form = ARCHITECTURES[architecture]
        flags.append(f"--iree-llvmcpu-target-triple={form.triple}")
        needed = form.features
        if form.abi:
            flags.append(f"--iree-llvmcpu-target-abi={form.abi}")
    flags.append(f"--iree-llvmcpu-target-cpu={llvm_name(name)}")
    if asked := ",".join(filter(None, (needed, features))):
        flags.append(f"--iree-llvmcpu-target-cpu-features={asked}")
    return tuple(flags)


def machine_of(name: str, features: str) -> Machine:
    """The model of a processor with LLVM's features beside its own."""
    if architecture_of(name) == "wasm32":
        return WASM
    if name in OWN and platform.machine() in ("aarch64", "arm64"):
        return NEON
    if architecture_of(name) == "aarch64":
        return NEON
    has = dict.fromkeys(_AVX512, name in _WITH_AVX512 or (name == OWN[0] and _host_has_avx512()))
    for feature in filter(None, features.split(",")):
        if feature[1:] in has:
            has[feature[1:]] = feature.startswith("+")
    return AVX512 if all(has.values()) else AVX2


@cache
def processor() -> tuple[str, ...]:
    """What tells this machine's processor from others, where code is made for it."""
    if not _CPUINFO.exists():
        return platform.machine(), platform.processor()
    first = _CPUINFO.read_text().partition("\n\n")[0].splitlines()
    return platform.machine(), *(line for line in first if line.startswith(_DECISIVE))


def extensions_of(name: str, features: str) -> frozenset[str]:
    """Instructions for products that a processor has beside vectors, by LLVM's names, with features beside its own."""
    if name == OWN[0]:
        found = {one for flag, one in _PRODUCTS.items() if flag in _host_flags()}
        is_intel = any("Intel" in line for line in processor())
    else:
        found = {one for one, names in _WITH_PRODUCTS.items() if name in names}
        is_intel = not name.startswith("znver")
    for feature in filter(None, features.split(",")):
        if feature[1:] in _PRODUCTS.values():
            (found.add if feature.startswith("+") else found.discard)(feature[1:])
    # Intel's take two cycles for what AMD's do in one, so that pairs by vectors are slower than f32 one by one: 512^3
    # takes 1.3 times as long (a Xeon with AMX). Beside registers for tiles they round alone.
    return frozenset(found - {"avx512bf16"} if is_intel and "amx-bf16" not in found else found)


def instructions_of(name: str, features: str) -> tuple[str, ...]:
    """What a processor has to have to run code for this one of x86-64, by Linux's names; nothing of others."""
    if name == OWN[0]:
        needed = _host_flags().intersection((*_V4, *_PRODUCTS)) - {"amx_int8", "amx_bf16"}
    else:
        levels = {"x86-64": (), "generic": (), "x86-64-v2": _V2} | dict.fromkeys(_WITH_AVX512, _V4)
        others = _V3 if name in PROCESSORS["x86-64"] else ()
        more = {flag for flag, one in _PRODUCTS.items() if one.startswith("avx512") and name in _WITH_PRODUCTS[one]}
        needed = frozenset({*levels.get(name, others), *more})
    for feature in filter(None, features.split(",")):
        flag = {one: flag for flag, one in _PRODUCTS.items()}.get(feature[1:], feature[1:].replace(".", "_"))
        if feature.startswith("-"):
            needed -= {flag}
        elif flag in (*_V4, *_PRODUCTS):
            needed |= {flag}
    return tuple(sorted(needed))


def lacking(instructions: Iterable[str]) -> list[str]:
    """Those that this machine's processor lacks, as far as is known."""
    return sorted(set(instructions) - _host_flags()) if _host_flags() else []


def _host_has_avx512() -> bool:
    """Whether this machine's processor has them, and its system saves them."""
    return set(_AVX512) <= _host_flags()


@cache
def _host_flags() -> frozenset[str]:
    """What Linux says that this machine's processor has; nothing elsewhere."""
    if not _CPUINFO.exists():
        return frozenset()
    lines = _CPUINFO.read_text().splitlines()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))


def llvm_name(name: str) -> str:
    """LLVM's name of a processor, where an architecture represents all of its own."""
    if name not in ARCHITECTURES:
        return name
    # LLVM calls the plain 32-bit and 64-bit processors of RISC-V by their width.
    return {"riscv64": "generic-rv64", "riscv32": "generic-rv32"}.get(name, "generic")
