"""Profiles: how one program, or programs like it, compile and run fastest; ``hloforge tune`` finds and writes them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path

from hloforge.dialect.errors import OptionError
from hloforge.runtime.files import write_atomically
from hloforge.runtime.options import CompileOptions

_FORMAT = "hloforge.profile"


@dataclass(frozen=True)
class Profile:
    """Choices beside hloforge's own.

    Attributes:
        flags: of IREE's compiler, after hloforge's.
        without: optimizing passes to leave out.
        device: where sessions run if nobody says; empty for hloforge's choice.
        threads: of the device; 0 for one a core.
    """

    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    device: str = ""
    threads: int = 0

    def __str__(self) -> str:
        device = f"{self.device}{f' of {self.threads}' if self.threads else ''}"
        flags = (flag.removeprefix("--iree-") for flag in self.flags)
        parts = [*flags, *(f"no {name}" for name in self.without), device]
        return ", ".join(filter(None, parts)) or "default"

    def applied(self, options: CompileOptions) -> CompileOptions:
        """Options with these choices; the device and threads that the options name stay."""
        return replace(
            options,
            flags=(*self.flags, *options.flags),
            without=options.without | set(self.without),
            device=options.device or self.device,
            threads=options.threads or self.threads,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as JSON. Raises CompileError if that fails."""
        write_atomically(path, (json.dumps({"kind": _FORMAT, **asdict(self)}, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Profile:
        """Read what ``save`` wrote. Raises OptionError if it is not that."""
        try:
            found = json.loads(Path(path).read_text())
        except OSError as error:
            raise OptionError(f"cannot read the profile {path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise OptionError(f"{path} is no profile: {error}", hint="hloforge tune writes them") from None
        names = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or found.get("kind") != _FORMAT or found.keys() - names != {"kind"}:
            raise OptionError(f"{path} is no profile of this hloforge", hint="hloforge tune writes them")
        match found:
            case {"flags": list(flags), "without": list(without), "device": str(device), "threads": int(threads)}:
                return cls(tuple(map(str, flags)), tuple(map(str, without)), device, threads)
        raise OptionError(f"{path} is a damaged profile", hint="hloforge tune writes them")
