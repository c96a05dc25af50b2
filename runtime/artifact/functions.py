"""Several functions in one file, such as both halves of a language model: each a program of its own, weights shared.

The first function is the file's vmfb, which any tool of IREE runs. The vmfbs of the others are appended to its zip, as
those of further targets are (``bundle.py``). Weights lie in a file beside it, which all sessions map: it is in
memory once.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from hloforge.dialect.errors import LoadError, OptionError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.data.integrity import DAMAGE

_FOLDER, _SUFFIX = "functions/", ".vmfb"
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
# As of ``bundle``: equal programs make equal files.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def joined(executables: Mapping[str, Executable]) -> Executable:
    """One executable of several functions, by their names. Without a name the first one is loaded.

    Raises:
        OptionError: there is none; a name is none; one is compiled at its calls, has functions already, or has another
            file of weights.
    """
    if not executables:
        raise OptionError("a file of functions needs one at least")
    first = next(iter(executables.values()))
    for name, executable in executables.items():
        if not _NAME.fullmatch(name):
            raise OptionError(f"{name!r} is no name of a function", hint="letters, digits, _ . and -, a letter first")
        if not executable.vmfb:
            raise OptionError(
                f"the function {name!r} is compiled at its calls, and a file holds what is compiled",
                hint="name the sizes of the arguments (shapes=…, --shape=x=8x4)",
            )
        if functions_of(executable.vmfb):
            raise OptionError(f"{name!r} is a file of functions already", hint="join the functions that it was made of")
    files = {e.manifest.weights_file for e in executables.values() if e.manifest.weights_file}
    if len(files) > 1:
        raise OptionError(
            f"the functions look their weights up in several files: {', '.join(sorted(files))}",
            hint="compile them together (hloforge.compile of a dict), or with one file: --weights",
        )
    stream = io.BytesIO(first.vmfb)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as archive:
        for name, executable in executables.items():
            content = executable.vmfb if name != next(iter(executables)) else b""
            archive.writestr(zipfile.ZipInfo(f"{_FOLDER}{name}{_SUFFIX}", _NO_TIME), content)
    weights = next((e.weights for e in executables.values() if e.weights), None)
    host = {name: function for e in executables.values() for name, function in e.host.items()}
    libraries = tuple(dict.fromkeys(library for e in executables.values() for library in e.libraries))
    return replace(first, vmfb=stream.getvalue(), weights=weights, host=host, libraries=libraries)


def functions_of(source: str | PathLike[str] | bytes) -> tuple[str, ...]:
    """The names of a file's functions; none of a file of one program."""
    if not isinstance(source, bytes) and not Path(source).is_file():
        return ()  # a pipe, which can be read once
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            entries = [name for name in archive.namelist() if name.startswith(_FOLDER)]
    except DAMAGE:
        return ()  # damaged, or no zip: whoever loads it says so
    return tuple(name.removeprefix(_FOLDER).removesuffix(_SUFFIX) for name in entries)


def function(source: str | PathLike[str] | bytes, name: str) -> str | PathLike[str] | bytes:
    """The vmfb of a function: the file itself for its first one.

    Raises:
        LoadError: the file has no such function, or is damaged.
    """
    names = functions_of(source)
    if name not in names:
        said = f"functions: {', '.join(names)}" if names else "it holds one program, without a name"
        raise LoadError(f"the file has no function {name!r}", hint=said)
    if name == names[0]:
        return source
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            return archive.read(f"{_FOLDER}{name}{_SUFFIX}")
    except DAMAGE as error:
        raise LoadError(f"the file's function {name} is damaged: {error}", hint="compile again") from None
