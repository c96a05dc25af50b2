"""NVIDIA's driver library under the name that IREE looks for.

IREE 3.13 opens ``libcuda.so``. That name belongs to packages for developers; drivers and containers bring
``libcuda.so.1`` alone. A library of that name that holds nothing and needs ``libcuda.so.1`` is found instead once it is
loaded, for the dynamic linker knows libraries by the name inside them. The linker in IREE's compiler makes one.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import platformdirs

from hloforge.runtime.data.private_folders import distrust, make_private

_WANTED = "libcuda.so"
_USUAL = "libcuda.so.1"


def find_cuda() -> str | None:
    """The name by which the dynamic linker finds NVIDIA's driver library; None if there is none."""
    for name in (_WANTED, _USUAL) if sys.platform.startswith("linux") else ("nvcuda.dll",):
        with suppress(OSError):
            ctypes.CDLL(name)
            return name
    return None


@cache
def provide_cuda() -> Path | None:
    """Load a stand-in for ``libcuda.so`` where the machine has ``libcuda.so.1`` alone; returns its file.

    None if none is needed, or none can be made: IREE then says what it misses.
    """
    if find_cuda() != _USUAL:
        return None
    folder = platformdirs.user_cache_path("hloforge") / "libraries"
    with suppress(OSError, subprocess.CalledProcessError):
        return load_stand_in(_WANTED, _USUAL, folder)
    return None


def load_stand_in(name: str, library: str, folder: Path) -> Path:
    """Make and load an empty library of a name, whose symbols are those of another one.

    Args:
        library: the name of a library that is loaded.

    Raises:
        OSError, subprocess.CalledProcessError: it cannot be made, or not be loaded.
    """
    path = folder / name
    make_private(folder)
    if why := distrust(folder):
        raise PermissionError(f"the folder of {name} is not trusted: {why}")
    if not path.exists():
        made = path.with_name(f"{name}.{os.getpid()}")
        options = ["-flavor", "gnu", "-shared", "-soname", name, "--no-as-needed", "-o", str(made)]
        subprocess.run([str(_linker()), *options, str(_file_of(library))], check=True, capture_output=True)
        made.replace(path)
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return path


def stand_in(name: str, library: str, folder: Path) -> Path:
    """Make such a library even where there is none to replace: for another machine, by the name that it will need.

    Raises:
        OSError, subprocess.CalledProcessError: it cannot be made.
    """
    needed, made, nothing = folder / library, folder / name, folder / "nothing"
    nothing.touch()
    for path, needs in ((needed, ("--format=binary", str(nothing))), (made, (str(needed),))):
        options = [
            "-flavor",
            "gnu",
            "-m",
            "elf_x86_64",
            "-shared",
            "-soname",
            path.name,
            "--no-as-needed",
            "-o",
            str(path),
            *needs,
        ]
        subprocess.run([str(_linker()), *options], check=True, capture_output=True)
    return made


def _linker() -> Path:
    try:
        import iree.compiler as compiler
    except ImportError as error:
        raise OSError("IREE's compiler, whose linker is needed, is not installed") from error
    return Path(compiler.__file__ or "").parent / "_mlir_libs" / "iree-lld"


def _file_of(library: str) -> Path:
    """The file of a library that this process has loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {Path(line.split(maxsplit=5)[5]) for line in lines if line.count("/")}
    found = next((path for path in paths if path.name == library or path.name.startswith(f"{library}.")), None)
    # The file of libcuda.so.1 is called by the driver's version.
    stem = library.partition(".so")[0]
    found = found or next((path for path in paths if path.name.startswith(f"{stem}.so")), None)
    if found is None:
        raise FileNotFoundError(library)
    return found
