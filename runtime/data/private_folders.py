"""Folders of trusted native code: only this user and the administrator may write to them.

That is so if every folder on the way from the root belongs to one of them, and neither a group nor everybody may write
to it: who may write to a folder may put another one in the place of what it holds. A folder such as ``/tmp``, in which
the sticky bit lets everybody replace only what is their own, may be on the way, and links too; what they lead to is
looked at likewise. A folder that is not there yet is judged by those in which it would be made.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

# As many links as Linux follows.
_MOST_LINKS = 40
_ADMINISTRATOR = 0


def distrust(folder: Path) -> str:
    """Why nothing in a folder is believed; empty for one to which only this user and the administrator can write."""
    if not hasattr(os, "geteuid"):
        return ""  # no system of owners and modes
    try:
        *above, last = _way(folder)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    reasons = [_reason(path, status, sticky=True) for path, status in above]
    # Of a folder that is not there the last one is where it would be made.
    return next(filter(None, [*reasons, _reason(*last, sticky=not folder.exists())]), "")


def make_private(folder: Path) -> None:
    """Make a folder for this user alone, and those that it lacks above. Raises OSError."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    # Mode and all at once: nobody else may write to it, not even for a moment.
    folder.mkdir(mode=0o700, exist_ok=True)


def read_private(path: Path) -> bytes:
    """The bytes of a file that only this user and the administrator can have written. Raises OSError for any other."""
    if why := distrust(path.parent):
        raise PermissionError(f"{path.parent}: {why}")
    # What is opened is looked at, not its name; a link is none of ours, and a pipe would make us wait.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode) or (hasattr(os, "geteuid") and _reason(path, status, sticky=False)):
            raise PermissionError(path)
        return stream.read()


def _reason(path: Path, status: os.stat_result, *, sticky: bool) -> str:
    """Why others can change what is in a place; with ``sticky`` that bit excuses a folder that others write to."""
    if status.st_uid not in (_ADMINISTRATOR, os.geteuid()):
        return f"{path} belongs to the user with the number {status.st_uid}"
    if stat.S_ISLNK(status.st_mode) or (sticky and status.st_mode & stat.S_ISVTX):
        return ""
    if status.st_mode & stat.S_IWOTH:
        return f"every user may write to {path}"
    return f"the group with the number {status.st_gid} may write to {path}" if status.st_mode & stat.S_IWGRP else ""


def _way(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """What is looked up on the way to a folder: the root, folders, links, as far as they are there. Raises OSError."""
    here = Path(folder.anchor or Path.cwd().anchor)
    yield here, here.lstat()
    left, links = list(reversed((Path.cwd() / folder).parts[1:])), 0
    while left:
        part = left.pop()
        here = here.parent if part == os.pardir else here / part
        try:
            status = here.lstat()
        except FileNotFoundError:
            return
        yield here, status
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(0, "more links than the system follows", str(folder))
            target = here.readlink()
            here = Path(target.anchor) if target.is_absolute() else here.parent
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
