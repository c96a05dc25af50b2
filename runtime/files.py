"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from os import PathLike
from pathlib import Path

from hloforge.dialect.errors import CompileError


def write_atomically(path: str | PathLike[str], data: bytes) -> None:
    """Write beside the destination under a temporary name, then rename; a device or pipe is written as it is.

    Raises:
        CompileError: the folder is missing or read-only, the disk is full, or the destination is a folder.
    """
    destination = Path(path)
    try:
        if destination.exists() and not destination.is_file() and not destination.is_dir():
            # Renaming onto /dev/null would replace the device.
            destination.write_bytes(data)
        else:
            # A link keeps pointing where it does.
            _replace(destination.resolve(), data)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CompileError(f"cannot write {destination}: {reason}") from None


def _replace(destination: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, _mode(destination))  # noqa: PTH101
        os.replace(temporary, destination)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _mode(destination: Path) -> int:
    """The permissions of the file that is replaced; for a new one, what the user's umask grants."""
    if destination.exists():
        return destination.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
