"""Targets: what to compile for, and IREE's flags for it."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from hloforge.dialect.errors import OptionError

# Names that IREE's x86-64 and AArch64 code generators know and users ask for; `host` and `generic` lead.
CPU_NAMES: tuple[str, ...] = (
    "host", "generic", "x86-64-v2", "x86-64-v3", "x86-64-v4", "haswell", "broadwell", "skylake", "skylake-avx512",
    "cascadelake", "icelake-server", "sapphirerapids", "graniterapids", "alderlake", "znver1", "znver2", "znver3",
    "znver4", "znver5",
)  # fmt: skip
KINDS: tuple[str, ...] = ("cpu", "cuda")
# Architectures of GPUs that IREE 3.13 knows by name, the default first. Code for one runs on later ones.
CUDA_NAMES: tuple[str, ...] = ("sm_80", "sm_60", "sm_70", "sm_75", "sm_86", "sm_89")
_FEATURES = re.compile(r"[+-][a-z0-9._-]+(,[+-][a-z0-9._-]+)*")


@dataclass(frozen=True)
class Target:
    """A kind of device and its variant.

    Attributes:
        kind: ``cpu`` or ``cuda``, for which programs are compiled and not yet run.
        cpu: ``host`` (this machine's processor), ``generic`` (any of the architecture) or a processor's name; of CUDA
            the GPU's architecture.
        features: LLVM's features, ``+avx2,-fma``; empty for those of the processor.
    """

    kind: str = "cpu"
    cpu: str = "host"
    features: str = ""

    @classmethod
    def parse(cls, text: str | Target) -> Target:
        """Read ``cpu``, ``cpu:host``, ``cpu:generic``, ``cpu:znver3,+avx2``, ``cuda``, ``cuda:sm_80``.

        Raises:
            OptionError: an unknown kind or processor, or malformed features.
        """
        if isinstance(text, Target):
            return text
        kind, _, variant = text.partition(":")
        if kind not in KINDS:
            raise OptionError(f"unknown target {text!r}", hint=f"this version compiles for: {', '.join(KINDS)}")
        if kind == "cuda":
            return cls(kind, _cuda_name(variant or CUDA_NAMES[0], text))
        cpu, _, features = (variant or "host").partition(",")
        if cpu not in CPU_NAMES:
            close = difflib.get_close_matches(cpu, CPU_NAMES, 3) or CPU_NAMES
            raise OptionError(f"unknown processor {cpu!r} in target {text!r}", hint=f"for example: {', '.join(close)}")
        if features and not _FEATURES.fullmatch(features):
            raise OptionError(f"malformed features {features!r}", hint="write +name or -name, separated by commas")
        if features and cpu == "host":
            raise OptionError(
                f"features cannot be added to the host's processor: {text!r}",
                hint=f"name one, as in cpu:generic,{features}",
            )
        return cls(kind, cpu, features)

    def __str__(self) -> str:
        return f"{self.kind}:{self.cpu}" + (f",{self.features}" if self.features else "")

    def flags(self) -> tuple[str, ...]:
        """IREE's flags for the target. Element types are kept: IREE would demote f64 by default."""
        device = (
            ["--iree-hal-target-device=cuda", f"--iree-cuda-target={self.cpu}"]
            if self.kind == "cuda"
            else [
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                f"--iree-llvmcpu-target-cpu={self.cpu}",
            ]
        )
        flags = [
            *device,
            "--iree-input-type=stablehlo",
            "--iree-input-demote-f64-to-f32=false",
            # The map holds the paths of the machine that compiled, in every file that is shipped.
            "--iree-vm-bytecode-module-strip-source-map=true",
        ]
        if self.features:
            flags.append(f"--iree-llvmcpu-target-cpu-features={self.features}")
        return tuple(flags)


def _cuda_name(name: str, text: str) -> str:
    if name not in CUDA_NAMES:
        raise OptionError(
            f"unknown architecture {name!r} in target {text!r}", hint=f"for example: {', '.join(CUDA_NAMES)}"
        )
    return name
