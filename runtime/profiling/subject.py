"""What to profile in a vmfb: one of its targets, loaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import LoadError, OptionError
from hloforge.runtime.artifact import bundle
from hloforge.runtime.artifact.code_signing import verified
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.profiling.capture import Subject
from hloforge.runtime.session.modules import read_manifest, weights_near
from hloforge.runtime.session.session import load

_HEAD = 8


def is_vmfb(source: Any) -> bool:
    """Whether a path or bytes hold a compiled module rather than a program."""
    if isinstance(source, bytes | bytearray | memoryview):
        return _begins_as_vmfb(bytes(source[:256]))
    # A string may be a program's text, which is no path.
    if not isinstance(source, str | PathLike) or (isinstance(source, str) and "\n" in source):
        return False
    try:
        with Path(source).open("rb") as stream:
            return _begins_as_vmfb(stream.read(256))
    except OSError:
        return False


def _begins_as_vmfb(head: bytes) -> bool:
    return head[4:_HEAD] == b"IREE" or (head.startswith(b"PK\x03\x04") and b"module.fb" in head)


def subject_of(
    source: str | PathLike[str] | bytes | Executable,
    *,
    device: str | None = None,
    threads: int | Sequence[int] | None = None,
    weights: str | PathLike[str] | None = None,
    **loading: Any,
) -> Subject:
    """Load a vmfb for measuring; arguments as of ``hloforge.load``.

    Raises:
        LoadError: as ``load``.
        OptionError: a program that is compiled at its calls, for their sizes.
    """
    data = _bytes(source)
    given = source if isinstance(source, Executable) else data
    if not data:
        raise OptionError(
            "the program is compiled at its calls, for the sizes of their arguments",
            hint="name the sizes: --shape NAME=8x4, or give --input",
        )
    manifest = read_manifest(given)
    near = Path(weights) if weights is not None else weights_near(source)
    # The bytes that were read are those that run, and are measured.
    session = load(given, device=device, threads=threads, weights=near, **loading)
    if manifest.targets[1:]:
        number = bundle.choose(list(map(Target.parse, manifest.targets)), device)
        data = bundle.read_entry(data, bundle.appended(data)[number - 1]) if number else data
    file = near / manifest.weights_file if near.is_dir() else near
    return Subject(session, data, threads or session.manifest.threads or None, file)


def _bytes(source: str | PathLike[str] | bytes | Executable) -> bytes:
    """The whole file, read once, and checked if signatures are asked for."""
    if isinstance(source, Executable):
        return source.vmfb
    source = verified(source)
    if isinstance(source, bytes):
        return source
    try:
        return Path(os.fspath(source)).read_bytes()
    except OSError as error:
        raise LoadError(f"cannot read {source}: {error.strerror}") from None
