"""The result of a compilation: a vmfb with its manifest, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.data.files import write_atomically

if TYPE_CHECKING:
    from hloforge.runtime.session.session import Session


@dataclass(frozen=True)
class Executable:
    """A compiled program.

    Attributes:
        vmfb: the bytes that any IREE tool reads; the manifest is inside them.
        manifest: signature, target, flags and versions.
        weights: the file that the program looks its weights up in, if it does.
        host: functions of the host that the program was compiled with, by name.
        libraries: shared libraries whose functions it was compiled with.
        compiles_at_calls: whether its sessions compile forms of the program, so that it makes them itself.
    """

    compiles_at_calls: ClassVar[bool] = False
    vmfb: bytes
    manifest: Manifest
    weights: Path | None = field(default=None, kw_only=True)
    host: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)
    libraries: tuple[Path, ...] = field(default=(), kw_only=True)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the vmfb; whoever looks sees the old file or the whole new one.

        Raises:
            CompileError: the file cannot be written.
        """
        write_atomically(path, self.vmfb)

    def load(self, *, device: str | None = None, threads: int | Sequence[int] | None = None, **options: Any) -> Session:
        """A session that runs the program; arguments as of ``hloforge.load``."""
        from hloforge.runtime.session.session import load

        return load(self, device=device, threads=threads, **options)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program with the session that ``load()`` gives; it is loaded once. Arguments as of a session."""
        return self._session(*arguments, **named)

    @cached_property
    def _session(self) -> Session:
        return self.load()

    def __repr__(self) -> str:
        return f"Executable({self.manifest.name}: {self.manifest.signature}, {len(self.vmfb)} bytes)"
