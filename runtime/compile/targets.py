"""Targets: what to compile for, and IREE's flags for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hloforge.dialect.errors import OptionError
from hloforge.dialect.suggestions import did_you_mean
from hloforge.pipelines.framework.machine import AVX2, Machine
from hloforge.runtime.compile.cpu_targets import CPU_NAMES, OWN, REFUSED, cpu_flags, instructions_of, machine_of
from hloforge.runtime.compile.gpu_targets import (
    CUDA_ARCHITECTURES,
    CUDA_PRODUCTS,
    LACKS,
    ROCM_ARCHITECTURES,
    ROCM_PRODUCTS,
    VULKAN_NAMES,
    Lack,
    cuda_flags,
    vulkan_name,
)
from hloforge.runtime.devices import drivers

__all__ = ["CPU_NAMES", "KINDS", "Target", "parse_targets", "target_of_device"]

# Kinds of target and the driver of IREE's runtime that runs their code; processors have two.
KINDS: Mapping[str, str] = {"cpu": "", "vulkan": "vulkan", "cuda": "cuda", "rocm": "hip", "metal": "metal"}
# Kinds that are compiled as another one is: what differs are names, limits and code generators.
_PIPELINES = {"rocm": "cuda", "metal": "vulkan"}
_FEATURES = re.compile(r"[+-][a-z0-9._-]+(,[+-][a-z0-9._-]+)*")


@dataclass(frozen=True)
class Target:
    """A kind of device and its variant.

    Attributes:
        kind: one of ``KINDS``.
        variant: of ``cpu``, ``host`` (this machine's processor), ``generic`` (any of its architecture), an
            architecture or a processor; of others the GPU's architecture; empty for Metal, which has none.
        features: LLVM's features of a processor, ``+avx2,-fma``; empty for those that it has anyway.
    """

    kind: str = "cpu"
    variant: str = "host"
    features: str = ""

    @classmethod
    def parse(cls, text: str | Target) -> Target:
        """Read ``cpu``, ``cpu:generic``, ``cpu:znver3,+avx2``, ``cpu:aarch64``, ``vulkan:rdna3``, ``cuda:sm_90``.

        A GPU without a variant is the one at hand; without a device at hand, the default of its kind.

        Raises:
            OptionError: an unknown kind, processor or GPU, one that nothing here compiles for, or malformed features.
        """
        if isinstance(text, Target):
            return text
        kind, _, variant = text.partition(":")
        if kind not in KINDS:
            raise OptionError(f"unknown target {text!r}", hint=_way_to(kind))
        if kind == "cpu":
            return _processor(variant or "host", text)
        if kind == "metal":
            if variant:
                raise OptionError(f"Metal has no variants: {text!r}", hint="write metal")
            return cls(kind, "")
        return cls(kind, _gpu(kind, variant, text) if variant else _at_hand(kind))

    def __str__(self) -> str:
        return self.kind + (f":{self.variant}" if self.variant else "") + (f",{self.features}" if self.features else "")

    @property
    def pipeline(self) -> str:
        """The named pipeline and the capability table that serve the kind."""
        return _PIPELINES.get(self.kind, self.kind)

    @property
    def driver(self) -> str:
        """The driver of IREE's runtime that runs the code; empty for processors, which have two."""
        return KINDS[self.kind]

    @property
    def lacks(self) -> Lack | None:
        """Element types that the device has no arithmetic for."""
        return LACKS.get(str(self)) or LACKS.get(self.kind)

    @property
    def instructions(self) -> tuple[str, ...]:
        """What the processor that runs its code has to have (``cpu_targets.instructions_of``)."""
        return instructions_of(self.variant, self.features) if self.kind == "cpu" else ()

    @property
    def machine(self) -> Machine:
        """The model of a processor, for which the pipeline writes code; a GPU's passes take thresholds of AVX2's."""
        return machine_of(self.variant, self.features) if self.kind == "cpu" else AVX2

    def flags(self) -> tuple[str, ...]:
        """IREE's flags for the target. Element types are kept: IREE would demote f64 by default."""
        return (
            *self._device_flags(),
            "--iree-input-type=stablehlo",
            "--iree-input-demote-f64-to-f32=false",
            # The map holds the paths of the machine that compiled, in every file that is shipped.
            "--iree-vm-bytecode-module-strip-source-map=true",
        )

    def _device_flags(self) -> tuple[str, ...]:
        match self.kind:
            case "cpu":
                return cpu_flags(self.variant, self.features)
            case "cuda":
                return cuda_flags(self.variant)
            case "rocm":
                return ("--iree-hal-target-device=hip", f"--iree-rocm-target={self.variant}")
            case "vulkan":
                return ("--iree-hal-target-device=vulkan", f"--iree-vulkan-target={VULKAN_NAMES[self.variant]}")
        return ("--iree-hal-target-device=metal",)


def parse_targets(text: str | Target | Sequence[str | Target]) -> tuple[Target, ...]:
    """Read one target or several, such as ``cuda:sm_90,vulkan,cpu:generic,+avx2`` or a list, the preferred first.

    Raises:
        OptionError: as ``Target.parse``, the same target twice, or none.
    """
    if isinstance(text, Target):
        return (text,)
    if not isinstance(text, str):
        return _distinct(tuple(map(Target.parse, text)), text)
    # A comma is between targets, and before features, which begin with a sign.
    found = tuple(map(Target.parse, re.split(r",(?![+-])", text)) if _is_list(text) else [Target.parse(text)])
    return _distinct(found, text)


def _distinct(found: tuple[Target, ...], given: object) -> tuple[Target, ...]:
    if not found:
        raise OptionError("no target is named: the list of them is empty", hint=_way_to(""))
    for number, target in enumerate(found):
        if target in found[:number]:
            raise OptionError(f"the target {target} is named twice: {given!r}")
    return found


def _is_list(text: str) -> bool:
    """Whether more than one part of a text names a target, which tells a list from malformed features."""
    return any(part.partition(":")[0] in KINDS for part in text.split(",")[1:])


def _way_to(name: str) -> str:
    """What to write instead of an unknown target."""
    kinds = f"targets: {', '.join(KINDS)}, with a device after a colon, as in cpu:aarch64 or cuda:sm_90"
    names = {
        "cpu": (*CPU_NAMES, *REFUSED),
        "cuda": (*CUDA_ARCHITECTURES, *CUDA_PRODUCTS),
        "rocm": (*ROCM_ARCHITECTURES, *ROCM_PRODUCTS, "hip"),
        "vulkan": tuple(VULKAN_NAMES),
    }
    kind = next((kind for kind, known in names.items() if name in known), None)
    return f"write {kind}:{name}; {kinds}" if kind and name != "hip" else kinds


def _processor(variant: str, text: str) -> Target:
    name, _, features = variant.partition(",")
    if name in REFUSED:
        raise OptionError(f"hloforge does not compile for {name!r}: {REFUSED[name]}", hint=_among(name, CPU_NAMES))
    if name not in CPU_NAMES:
        raise OptionError(f"unknown processor {name!r} in target {text!r}", hint=_among(name, CPU_NAMES))
    if features and not _FEATURES.fullmatch(features):
        raise OptionError(f"malformed features {features!r}", hint="write +name or -name, separated by commas")
    if features and name == OWN[0]:
        raise OptionError(
            f"features cannot be added to the host's processor: {text!r}",
            hint=f"name one, as in cpu:generic,{features}",
        )
    return Target("cpu", name, features)


def _gpu(kind: str, name: str, text: str) -> str:
    """The architecture of a GPU that is named by it or by a product."""
    products: Mapping[str, str] = {"cuda": CUDA_PRODUCTS, "rocm": ROCM_PRODUCTS}.get(kind, {})
    known = _architectures(kind)
    found = products.get(name.lower(), name)
    if found not in known:
        raise OptionError(f"unknown GPU {name!r} in target {text!r}", hint=_among(name, (*known, *products)))
    return found


def _architectures(kind: str) -> tuple[str, ...]:
    return {"cuda": tuple(CUDA_ARCHITECTURES), "rocm": ROCM_ARCHITECTURES, "vulkan": tuple(VULKAN_NAMES)}[kind]


def known_variants(kind: str) -> tuple[str, ...]:
    """What may follow a kind of target and a colon, but for features and products' names."""
    if kind == "metal":
        return ()
    return CPU_NAMES if kind == "cpu" else _architectures(kind)


def _among(name: str, known: Sequence[str]) -> str:
    """A hint that lists what is known, the names that were perhaps meant first."""
    return f"{did_you_mean(name, known)} known: {', '.join(known)}".strip()


def target_of_device(driver: str, device: drivers.Device) -> Target | None:
    """What to compile for a device; None for processors, and for GPUs of an architecture that nothing compiles for."""
    kind = next((kind for kind, name in KINDS.items() if name and name == driver), None)
    if kind is None:
        return None
    if kind == "metal":
        return Target(kind, "")
    name = vulkan_name(f"{device.name} {device.info.get('driver', '')}") if kind == "vulkan" else device.architecture
    return Target(kind, name) if name in _architectures(kind) else None


def _at_hand(kind: str) -> str:
    """The architecture of this machine's first GPU; the default of its kind where there is none, or a stranger."""
    found = drivers.first_device(KINDS[kind])
    target = target_of_device(KINDS[kind], found) if found else None
    return target.variant if target else _architectures(kind)[0]
