"""The manifest inside a vmfb: signature, target, flags, versions.

The manifest is one JSON text in IREE's reflection attributes of ``main``, so the file stays a plain vmfb for any tool.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hloforge.dialect.errors import LoadError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.program import Alias, Parameter, Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.replicas.shards import Sharded
from hloforge.runtime.artifact.attempts import FIRST, Attempts

REFLECTION_KEY = "hloforge.manifest"
# Beside it: the names of dispatches in the program by those of their kernels, as JSON (``compile/assembly``).
DISPATCHES_KEY = "hloforge.dispatches"
# Raised when a reader of the previous format would misread the new one. Format 2 has ``attempts``; without it, the
# manifest is written in format 1, which an older hloforge reads as well.
FORMAT = 2
_PACKAGES = ("hloforge", "jaxlib", "iree-base-compiler")
# What makes machine code of kernels of our own, which only programs of these name among their versions.
LLVM = "llvmlite"


@dataclass(frozen=True)
class Manifest:
    """The calling convention and the provenance of a compiled program.

    Attributes:
        name: the program's name.
        signature: parameters and result in XLA's terms.
        target: as ``Target`` prints it.
        targets: of a file for several ones, all of them, the preferred first; else empty.
        flags: IREE's flags, all of them.
        versions: package name to version.
        work: estimated elements of the heaviest single operation (``work.heaviest_operation``); chooses the device.
        device: where sessions run if nobody says; empty for a choice by ``work``.
        threads: of the device; 0 for one a core.
        source: the base name of the file that was compiled.
        weights: the arrays that the program looks up when it is loaded, by name.
        weights_file: the base name of the file that holds them; empty if there are none.
        host_calls: what the program calls of its host, by the numbers of its imports.
        sharded: how the whole arrays lie on devices of which the signature names the parts; None if it names wholes.
        attempts: which attempt compiled the program, and why the earlier ones failed.
        instructions: that the processor has to have, by Linux's names.
        functions: of a file of several ones, their names; else empty. The file has them, not the manifest.
    """

    name: str
    signature: Signature
    target: str = ""
    flags: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    work: int = 0
    device: str = ""
    threads: int = 0
    source: str = ""
    weights: tuple[tuple[str, Shape], ...] = ()
    weights_file: str = ""
    host_calls: tuple[HostCall, ...] = ()
    sharded: Sharded | None = None
    targets: tuple[str, ...] = ()
    attempts: Attempts = FIRST
    instructions: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    @property
    def is_generated(self) -> bool:
        """Whether our code generator made the program."""
        return LLVM in dict(self.versions)

    def to_json(self) -> str:
        return self._json

    @cached_property
    def _json(self) -> str:
        """Written once: the vmfb and the cache both ask."""
        signature = self.signature
        entries = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "format": FORMAT if self.attempts.failed else 1,
            "versions": dict(self.versions),
            "weights": {name: str(shape) for name, shape in self.weights},
            "host_calls": [call.to_json() for call in self.host_calls],
            "sharded": self.sharded and self.sharded.to_json(),
            "signature": {
                "parameters": [[parameter.name, str(parameter.shape)] for parameter in signature.parameters],
                "result": str(signature.result),
                "aliases": [str(alias) for alias in signature.aliases],
                **({"result_names": signature.result_names} if signature.result_names else {}),
                **({"labels": dict(signature.labels)} if signature.labels else {}),
            },
        }
        del entries["functions"]
        if not self.instructions:
            del entries["instructions"]
        if not self.targets:
            del entries["targets"]  # what an older hloforge reads as well
        if self.attempts.failed:
            entries["attempts"] = asdict(self.attempts)
        else:
            del entries["attempts"]
        return json.dumps(entries, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read back ``to_json``. Raises LoadError for damaged text or a newer format."""
        try:
            found: dict[str, Any] = json.loads(text)
            if found.pop("format") > FORMAT:
                raise LoadError("this vmfb was made by a newer hloforge", hint="upgrade hloforge, or compile again")
            signature = found.pop("signature")
            sharded, attempts = found.pop("sharded", None), found.pop("attempts", None)
            return cls(
                signature=Signature(
                    tuple(Parameter(name, Shape.parse(shape)) for name, shape in signature["parameters"]),
                    Shape.parse(signature["result"]),
                    tuple(map(Alias.parse, signature["aliases"])),
                    tuple(signature.get("result_names", ())),
                    tuple((name, tuple(stand)) for name, stand in signature.get("labels", {}).items()),
                ),
                flags=tuple(found.pop("flags")),
                targets=tuple(found.pop("targets", ())),
                instructions=tuple(found.pop("instructions", ())),
                versions=tuple(found.pop("versions").items()),
                weights=tuple((name, Shape.parse(text)) for name, text in found.pop("weights", {}).items()),
                host_calls=tuple(map(HostCall.from_json, found.pop("host_calls", ()))),
                sharded=Sharded.from_json(sharded) if sharded else None,
                attempts=Attempts.from_json(attempts) if attempts else FIRST,
                **found,
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise LoadError(f"the manifest inside the vmfb is damaged: {error}", hint="compile again") from None


def tool_versions() -> tuple[tuple[str, str], ...]:
    """The versions of what takes part in a compilation, by name."""
    found = {name: _version(name) for name in _PACKAGES} | {"python": platform.python_version()}
    return tuple(sorted(found.items()))


@cache
def _version(package: str) -> str:
    """A package's version, which takes two milliseconds to find."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
