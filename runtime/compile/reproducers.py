"""Reproducers of failed compilations: the input, and the command that repeats the failure.

The last few are kept in a folder beside the cached compilations, so that whoever compiles failing programs in a loop
does not fill the disk. The folder is the user's own; a file in it is written whole or not at all.
"""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from hloforge.dialect.errors import CompileError, OptionError
from hloforge.pipelines.framework.defects import DefectError
from hloforge.runtime.compile import cache
from hloforge.runtime.data.files import write_atomically
from hloforge.runtime.data.private_folders import distrust, make_private

# How many are kept; 0 for none.
KEEP_VARIABLE = "HLOFORGE_KEEP_FAILURES"
_KEPT = 5
_SUFFIX = ".repro.mlir"
# An attempt after whose failure another one is made.
_is_tentative = ContextVar("_is_tentative", default=False)


@contextmanager
def tentative() -> Iterator[None]:
    """Leave nothing for failures meanwhile: they are met by another attempt."""
    token = _is_tentative.set(True)
    try:
        yield
    finally:
        _is_tentative.reset(token)


def kept() -> int:
    """How many reproducers are kept. Raises OptionError for a number that is none."""
    chosen = os.environ.get(KEEP_VARIABLE, str(_KEPT))
    if not chosen.isdecimal():
        raise OptionError(f"{KEEP_VARIABLE}={chosen!r} is no number of failed compilations to keep")
    return int(chosen)


def folder() -> Path:
    """Where reproducers are kept, if the caller names no place: in the cache, or where temporary files go without one.

    The second belongs to this user alone, and has a name that every process finds.
    """
    home = cache.folder()
    if home is not None:
        return home / "failures"
    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    return Path(tempfile.gettempdir(), f"hloforge-failures-{user}")


def of_compiler(text: bytes, flags: Sequence[str], name: str, chosen: Path | None) -> tuple[str, ...]:
    """Keep the input of IREE's compiler; the notes of an error that tell how to repeat the failure.

    Args:
        chosen: a folder that the user named, in which nothing is removed.
    """
    return _keep(text, name, chosen, lambda path: f"iree-compile {path} -o out.vmfb {shlex.join(flags)}")


@contextmanager
def of_defects(name: str, chosen: Path | None) -> Iterator[None]:
    """Keep the program as the pass that fails inside got it, and say so in the error."""
    try:
        yield
    except DefectError as error:
        command = f"--pipeline={shlex.quote(error.pipeline)}"
        text = error.before.encode()
        error.notes += _keep(text, name, chosen, lambda path: f"hloforge opt --keep-marks {path} {command}")
        raise


def _keep(text: bytes, name: str, chosen: Path | None, command: Callable[[str], str]) -> tuple[str, ...]:
    if _is_tentative.get():
        return ()
    label = "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:80] or "module"
    number = kept()
    if chosen is None and not number:
        return (f"{KEEP_VARIABLE}=0: what failed is not kept",)
    try:
        home = chosen or _made(folder())
        path = home / (f"{label}{_SUFFIX}" if chosen else f"{time.time_ns():020d}-{label}{_SUFFIX}")
        home.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
        if chosen is None:
            _trim(home, number)
    except (OSError, CompileError) as error:
        why = error.message if isinstance(error, CompileError) else error
        return (f"reproduce with: (the reproducer could not be written: {why})",)
    return (f"reproduce with: {command(shlex.quote(str(path)))}",)


def _made(home: Path) -> Path:
    make_private(home)
    if why := distrust(home):
        raise PermissionError(f"{home}: {why}")
    return home


def _trim(home: Path, number: int) -> None:
    """Remove all but the newest; their names begin with the time. Other processes may be at it too."""
    for path in sorted(home.glob(f"*{_SUFFIX}"))[:-number]:
        with suppress(OSError):
            path.unlink()
