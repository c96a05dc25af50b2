"""Profiles: how one program, or programs like it, compile and run fastest; ``hloforge tune`` finds and writes them.

A profile is data, and comes from anywhere: a flag of IREE's compiler may name a program that it runs. So what a file
says is taken only if ``tune`` may have written it: flags of a list with values of theirs, a device, and such numbers
of the machine.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import Location, OptionError
from hloforge.pipelines.framework.machine import check_settings
from hloforge.runtime.data.files import write_atomically
from hloforge.runtime.options import CompileOptions, check_device

_FORMAT = "hloforge.profile"
# No profile is as long; what has no end is not read to it.
_LONGEST = 1 << 20
_MOST_THREADS = 1 << 16
_SWITCH = ("", "true", "false")
# What profiles of hloforge 0.1 say and this one has no more: passes to leave out, and numbers of the machine.
_FORMER, _FORMER_NUMBERS = frozenset({"without"}), frozenset({"dispatch-work", "group-elements"})
# The flags of IREE's compiler that ``tune`` asks about, with the values that they may have.
FLAGS = {
    "--iree-opt-level": ("O0", "O1", "O2", "O3"),
    "--iree-dispatch-creation-data-tiling": _SWITCH,
    "--iree-llvmcpu-enable-ukernels": ("all", "none"),
    "--iree-dispatch-creation-enable-aggressive-fusion": _SWITCH,
    "--iree-dispatch-creation-enable-fuse-horizontal-contractions": _SWITCH,
    "--iree-llvmcpu-distribution-size": ("16", "32", "64", "128", "256"),
    "--iree-opt-aggressively-propagate-transposes": _SWITCH,
    "--iree-codegen-llvmgpu-use-vector-distribution": _SWITCH,
    "--iree-codegen-llvmgpu-use-reduction-vector-distribution": _SWITCH,
    "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul": _SWITCH,
    "--iree-llvmgpu-enable-shared-memory-reuse": _SWITCH,
}


@dataclass(frozen=True)
class Profile:
    """Choices beside hloforge's own.

    Attributes:
        flags: of IREE's compiler, after hloforge's.
        device: where sessions run if nobody says; empty for hloforge's choice.
        threads: of the device; 0 for one a core.
        machine: numbers of the processor's model, ``l2-bytes=1048576``, of ``machine.TUNABLE``.
    """

    flags: tuple[str, ...] = ()
    device: str = ""
    threads: int = 0
    machine: tuple[str, ...] = ()

    def __str__(self) -> str:
        device = f"{self.device}{f' of {self.threads}' if self.threads else ''}"
        flags = (flag.removeprefix("--iree-") for flag in self.flags)
        parts = [*flags, *self.machine, device]
        return ", ".join(filter(None, parts)) or "default"

    def applied(self, options: CompileOptions) -> CompileOptions:
        """Options with these choices; the machine, device and threads that the options name stay."""
        return replace(
            options,
            flags=(*self.flags, *options.flags),
            machine=options.machine or self.machine,
            device=options.device or self.device,
            threads=options.threads or self.threads,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON. Raises CompileError if that fails."""
        write_atomically(path, (json.dumps({"kind": _FORMAT, **asdict(self)}, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Profile:
        """Read what ``save`` wrote. Raises OptionError if it is not that, or if ``tune`` would not have written it."""
        try:
            found = json.loads(_text(Path(path)))
        except OSError as error:
            raise OptionError(f"cannot read the profile {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise OptionError(f"{path} is no profile: {error}", hint=_HINT) from None
        names = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or found.get("kind") != _FORMAT or found.keys() - names - _FORMER != {"kind"}:
            raise OptionError(f"{path} is no profile of this hloforge", hint=_HINT)
        # Profiles of hloforge 0.1 say nothing of the machine.
        written: dict[str, Any] = {"machine": []} | found
        match written:
            case {
                "flags": list(flags),
                "device": str(device),
                "threads": int(threads),
                "machine": list(machine),
            }:
                numbers = (number for number in map(str, machine) if number.partition("=")[0] not in _FORMER_NUMBERS)
                profile = cls(tuple(map(str, flags)), device, threads, tuple(numbers))
                try:
                    profile.check()
                except OptionError as error:
                    error.location = Location(str(path))
                    raise
                return profile
        raise OptionError(f"{path} is a damaged profile", hint=_HINT)

    def check(self) -> None:
        """Raise OptionError for what ``tune`` does not write."""
        for flag in self.flags:
            name, equals, value = flag.partition("=")
            values = FLAGS.get(name)
            if values is None:
                raise OptionError(f"a profile may not have the flag {name}", hint=f"{_HINT}; {_BY_HAND}")
            if value not in values or (equals and not value):
                raise OptionError(
                    f"a profile may not set {name} to {value!r}",
                    hint=f"its values: {', '.join(filter(None, values))}; {_BY_HAND}",
                )
        try:
            check_settings(self.machine)
        except ValueError as error:
            raise OptionError(f"a profile may not set the machine so: {error}", hint=_HINT) from None
        if self.device:
            check_device(self.device)
        if isinstance(self.threads, bool) or not 0 <= self.threads <= _MOST_THREADS:
            raise OptionError(f"a profile may not ask for {self.threads} threads", hint=_HINT)


_HINT = "hloforge tune writes them"
_BY_HAND = "give a flag that you trust on the command line"


def _text(path: Path) -> str:
    """The text of a file. Raises ValueError if it is too long, or no text, and OSError."""
    with path.open("rb") as stream:
        data = stream.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST} bytes")
    return data.decode()
