"""Load vmfbs into IREE: check sums, signatures, and modules shared between sessions."""

from __future__ import annotations

import mmap
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from hloforge.dialect.bounded_reading import read_path
from hloforge.dialect.errors import LoadError, name_text
from hloforge.runtime.artifact.code_signing import Verified, verified
from hloforge.runtime.data.integrity import check_sums
from hloforge.runtime.devices.devices import FAILURES, instance, reason, rt

ADVICE = "a vmfb runs on the IREE version that compiled it: compile again with this hloforge"
# IREE 3.13 gives a module with constants never back, its file's descriptor included, once a context has used it: 1,000
# loads of one file would run out of descriptors. So contexts share the modules of the last files and smaller bytes.
_SHARED_MODULES, _SHARED_BYTES = 16, 1 << 24


def vm_module(source: str | PathLike[str] | bytes, here: bool = False) -> Any:
    """The only door by which a vmfb reaches IREE: what has to be signed, and is not, stays outside.

    Args:
        here: whether this process compiled it.
    """
    source = verified(source, compiled_here=here)
    name = getattr(source, "name", Verified.name) if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else _contents(Path(source))
        identity = () if data is not None else _identity(Path(name))
    except OSError as error:
        raise LoadError(f"cannot read {name}: {error.strerror}") from None
    if data is not None and not data:
        raise LoadError(f"{name} is empty: no vmfb")
    check_sums(Path(source) if data is None and not isinstance(source, bytes) else data or b"", name)
    try:
        if data is None:
            return _mapped(instance(), name, identity)
        return (_copied if len(data) <= _SHARED_BYTES else rt.VmModule.copy_buffer)(instance(), data)
    except FAILURES as error:
        said = reason(error)
        what = "is of another version of IREE" if "version mismatch" in said else "is no vmfb, or damaged"
        raise LoadError(f"{name} {what}: {said}", hint=ADVICE) from None


@lru_cache(maxsize=_SHARED_MODULES)
def _mapped(instance: Any, name: str, identity: tuple[int, ...]) -> Any:
    # ``VmModule.mmap`` opens a file for writing as well, but others may own it, or its volume be read-only.
    with Path(name).open("rb") as file:
        return rt.VmModule.wrap_buffer(instance, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@lru_cache(maxsize=_SHARED_MODULES)
def _copied(instance: Any, data: bytes) -> Any:
    return rt.VmModule.copy_buffer(instance, data)


def _identity(path: Path) -> tuple[int, ...]:
    """What tells a file from one that takes its place."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _contents(path: Path) -> bytes | None:
    """The bytes of a pipe or an empty file; None for a file that is to be mapped, which costs no memory."""
    # IREE maps what has a name in UTF-8.
    is_mapped = path.is_file() and path.stat().st_size and name_text(str(path)) == str(path)
    return None if is_mapped else read_path(path)
