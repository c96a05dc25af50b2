"""Write files atomically."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from uuid import uuid4

from hloforge.dialect.errors import CompileError
from hloforge.dialect.temporary import PREFIX

# What is to go if the process ends by a signal, while no block of ours will be left in order.
_pending: set[Path] = set()
# Where temporary folders are made, if not in the system's place.
_nest: list[Path] = []
# The main thread goes on, and may write into a folder that is being removed, or remove it as well.
_ATTEMPTS = 3


def remove_pending() -> None:
    """Remove the temporary files and folders of this module that are in use; for a process that ends by a signal."""
    for path in tuple(_pending):
        with suppress(OSError):
            path.unlink()
        for _ in range(_ATTEMPTS):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


def remove_temporary(prefix: str = PREFIX) -> None:
    """Remove all temporary files and folders whose names begin so: of this process, its forks and its workers."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            path.unlink()
        shutil.rmtree(path, ignore_errors=True)


def nest_temporary_folders(folder: Path | None) -> None:
    """Make a child's temporary folders in one that its parent removes; what is pending is the parent's."""
    _pending.clear()
    if folder is not None:
        _nest.append(folder)


@contextmanager
def temporary_folder() -> Iterator[Path | None]:
    """A folder that is removed with all that lies in it; None where none can be made."""
    try:
        # Pending before it is there, for a signal may come in between.
        folder = Path(_nest[-1] if _nest else tempfile.gettempdir(), f"{PREFIX}{uuid4().hex}")
        _pending.add(folder)
        folder.mkdir(mode=0o700)
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _pending.discard(folder)


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
            with replacing(destination.resolve()) as temporary:
                temporary.write_bytes(data)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CompileError(f"cannot write {destination}: {reason}") from None


@contextmanager
def replacing(destination: Path, *, mode: int | None = None) -> Iterator[Path]:
    """A temporary file beside the destination, to be filled; it takes the destination's place if the block ends well.

    Args:
        mode: permissions of the file; by default those of the file that is replaced, or what the umask grants.

    Raises:
        OSError: it cannot be made there, or renamed.
    """
    temporary = destination.with_name(f".{destination.name[:100]}.{uuid4().hex}.tmp")
    _pending.add(temporary)
    try:
        temporary.touch(mode=0o600, exist_ok=False)
        yield temporary
        temporary.chmod(_mode(destination) if mode is None else mode)
        temporary.replace(destination)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        _pending.discard(temporary)


def _mode(destination: Path) -> int:
    """The permissions of the file that is replaced; for a new one, what the user's umask grants."""
    if destination.exists():
        return destination.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
