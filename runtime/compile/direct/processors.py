"""The processors that machine code is made for: this machine's, and others by LLVM's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from hloforge.runtime.compile.cpu_targets import architecture_of, llvm_name
from hloforge.runtime.compile.targets import Target


@dataclass(frozen=True)
class Form:
    """What is asked for code of an architecture.

    Attributes:
        triple: LLVM's, as IREE calls what its embedded loader takes.
        format: IREE's name of the library.
        machine: ELF's number of the architecture.
        relative: that of the relocation which adds the library's start.
        page: bytes of the largest page of memory that systems have.
    """

    triple: str
    format: str
    machine: int
    relative: int
    page: int


X86_64, AARCH64 = "x86-64", "aarch64"
FORMS: Mapping[str, Form] = {
    X86_64: Form("x86_64-unknown-unknown-eabi-elf", "embedded-elf-x86_64", 62, 8, 1 << 12),
    AARCH64: Form("aarch64-unknown-unknown-eabi-elf", "embedded-elf-arm_64", 183, 1027, 1 << 16),
}


@dataclass(frozen=True)
class Processor:
    """A processor.

    Attributes:
        name: LLVM's; empty for that of this machine.
        features: LLVM's beside its own, each with its sign.
    """

    architecture: str = X86_64
    name: str = ""
    features: str = ""

    @property
    def form(self) -> Form:
        return FORMS[self.architecture]


HOST = Processor()
# LLVM's features that users name. llvmlite's LLVM says of others what it does not know, but to nobody: IREE's compiler
# takes or refuses those.
_FEATURES: Mapping[str, frozenset[str]] = {
    X86_64: frozenset((
        "adx", "aes", "avx", "avx2", "avx512bf16", "avx512bitalg", "avx512bw", "avx512cd", "avx512dq", "avx512f",
        "avx512fp16", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vl", "avx512vnni", "avx512vpopcntdq", "avxvnni",
        "amx-bf16", "amx-int8", "amx-tile", "bmi", "bmi2", "f16c", "fma", "gfni", "lzcnt", "movbe", "pclmul", "popcnt",
        "sha", "sse3", "sse4.1", "sse4.2", "ssse3", "vaes", "vpclmulqdq",
    )),
    AARCH64: frozenset((
        "aes", "bf16", "crc", "dotprod", "fp-armv8", "fp16fml", "fullfp16", "i8mm", "lse", "neon", "rdm", "sha2", "sve",
        "sve2",
    )),
}  # fmt: skip


@cache
def processor_of(target: Target) -> Processor | None:
    """The processor of a target; None if no machine code is made for it here."""
    if target.kind != "cpu":
        return None
    # What is for any processor of this machine's architecture is for any of x86-64, where this package runs.
    architecture = architecture_of(target.variant) or X86_64
    if architecture not in FORMS or not _knows(architecture, target.features):
        return None
    if target.variant == "host":
        return Processor(features=target.features)
    name = llvm_name(target.variant)
    return Processor(architecture, "x86-64" if architecture == X86_64 and name == "generic" else name, target.features)


def _knows(architecture: str, features: str) -> bool:
    return all(feature[1:] in _FEATURES[architecture] for feature in filter(None, features.split(",")))
