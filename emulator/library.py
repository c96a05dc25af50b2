"""The emulator as a library, built by the system's C++ compiler once for each state of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

_SOURCES = Path(__file__).parent
_BUILD = _SOURCES.parent / "build" / "cuda-emulator"
# Interpreted kernels round as they are asked to; the compiler must not compute them.
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-frounding-math", "-fvisibility=hidden", "-pthread")


def missing() -> str:
    """Why there is no emulator here; nothing if there is."""
    return "" if shutil.which("c++") else "no C++ compiler is installed: apt-get install g++"


@cache
def library() -> Path:
    """The file, ``libcuda.so``. Raises subprocess.CalledProcessError if it cannot be built."""
    sources = sorted(path for path in _SOURCES.iterdir() if path.suffix in {".cpp", ".h", ".def"})
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = _BUILD / state
    if not folder.exists():
        _BUILD.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=_BUILD))
        _build([path for path in sources if path.suffix == ".cpp"], made)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return folder / "libcuda.so"


def environment() -> dict[str, str]:
    """A child process's, whose one NVIDIA GPU is the emulated one."""
    paths = [str(library().parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}


def _build(sources: list[Path], folder: Path) -> None:
    objects = [folder / f"{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda pair: _run("-c", pair[0], "-o", pair[1]), zip(sources, objects, strict=True)))
    _run("-shared", *objects, "-Wl,-soname,libcuda.so", "-o", folder / "libcuda.so")
    for path in objects:
        path.unlink()


def _run(*arguments: str | Path) -> None:
    subprocess.run(["c++", *_FLAGS, *map(str, arguments)], check=True)
