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


@cache
def processor_of(target: Target) -> Processor | None:
    """The processor of a target; None if no machine code is made for it here."""
    if target.kind != "cpu":
        return None
    if target.variant == "host":
        return Processor(features=target.features)
    # What is for any processor of this machine's architecture is for any of x86-64, where this package runs.
    architecture = architecture_of(target.variant) or X86_64
    if architecture not in FORMS:
        return None
    name = llvm_name(target.variant)
    return Processor(architecture, "x86-64" if architecture == X86_64 and name == "generic" else name, target.features)
