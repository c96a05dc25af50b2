"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from os import PathLike
from pathlib import Path

from hloforge.dialect.errors import CompileError


def write_atomically(path: str | PathLike[str], data: bytes) -> None:
    """Write beside the destination under a temporary name, then rename.

    Raises:
        CompileError: the folder is missing or read-only, the disk is full, or the destination is a folder.
    """
    destination = Path(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.", suffix=".tmp")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        # mkstemp makes private files; a new file gets what the user's umask grants.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # noqa: PTH101
        os.replace(temporary, destination)  # noqa: PTH105
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise CompileError(f"cannot write {destination}: {error.strerror}") from None
